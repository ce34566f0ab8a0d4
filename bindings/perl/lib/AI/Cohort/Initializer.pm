# SPDX-License-Identifier: Apache-2.0
package AI::Cohort::Initializer;
use strict;
use warnings;
use AI::Cohort::FFI;
use AI::Cohort::Arrays;
use JSON::PP ();
use Scalar::Util qw(blessed);

our @ISA = ('AI::Cohort::Handle');

use overload '&{}' => sub { my $self = shift; sub { $self->fill(@_) } }, bool => sub {1}, fallback => 1;

sub free_handle { cohort_initializer_free($_[1]) }

sub create {
    my ($class, $name, @given) = @_;
    my %given = settings_of('initializer', undef, @given);
    my $seed = delete $given{seed};
    cohort_initializer_create($name, attributes_of(\%given), $seed // 0, \my $handle);
    return $class->adopt($handle, rule => [lc $name, {%given}]);
}

sub new { my $class = shift; $class->create(@_) }

# A method for each rule, called as in AI::MXNet.
for my $rule (qw(Zero One Constant Uniform Normal Xavier MSRAPrelu Orthogonal)) {
    no strict 'refs';
    *$rule = sub {
        my ($class, @given) = @_;
        my %first = (Constant => 'value', Uniform => 'scale', Normal => 'sigma');
        unshift @given, $first{$rule} // invalid("$rule: expected names and values", $rule) if @given % 2;
        return $class->create($rule, @given);
    };
}

# Fills arrays by name: a hash, or a library list.
sub apply {
    my ($self, $arrays, $symbol) = @_;
    $arrays = AI::Cohort::Arrays->of($arrays // {}) unless blessed $arrays;
    cohort_initializer_apply($self->{handle}, handle_of($symbol, 'symbol'), handle_of($arrays, 'arrays'));
    return;
}

# Fills one array by the rule itself, whatever its name.
sub fill {
    my ($self, $name, $array) = @_;
    cohort_initializer_fill($self->{handle}, $name, handle_of($array, 'array'));
    return;
}

# The value for a variable's attribute __init__.
sub dumps { JSON::PP->new->canonical->encode($_[0]{rule}) }

1;

__END__

=encoding UTF-8

=head1 NAME

AI::Cohort::Initializer - rules that fill parameters before training

=head1 SYNOPSIS

    use AI::Cohort qw(mx);
    my %params = (fc_weight => mx->nd->zeros([3, 4]), fc_bias => mx->nd->zeros([3]));
    mx->init->Xavier(rnd_type => 'gaussian', magnitude => 2, seed => 7)->apply(\%params);

=head1 DESCRIPTION

The same seed and names give the same numbers. As a function an object fills one array: C<< $init->($name, $array) >>.

=head1 METHODS

=head2 create($rule, %settings), new($rule, %settings)

Class methods: C<zero>, C<one>, C<constant> (value), C<uniform> (scale), C<normal> (sigma), C<xavier> (rnd_type, factor_type,
magnitude), C<msraprelu> (factor_type, slope), C<orthogonal> (scale, rand_type); for the random ones also C<seed>.

=head2 Zero, One, Constant($value), Uniform($scale), Normal($sigma), Xavier, MSRAPrelu, Orthogonal

Class methods: the same rules by name, C<< mx->init->Uniform(0.1, seed => 3) >>.

=head2 apply(\%arrays, $symbol)

Fills arrays by name: the C<__init__> attribute of the symbol's variable comes first; otherwise the end of the name decides:
weights by this rule, biases by 0, gammas by 1 and so on. The symbol may be left out.

=head2 fill($name, $array)

Fills one array by the rule, whatever its name.

=head2 dumps

The rule as text for the attribute C<__init__>.

=cut
