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
    my ($class, $name, %given) = @_;
    my $seed = delete $given{seed};
    cohort_initializer_create($name, attributes_of(\%given), $seed // 0, \my $handle);
    return $class->adopt($handle, rule => [lc $name, \%given]);
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

# Fills arrays by name: a hash, or a list of the library's.
sub apply {
    my ($self, $arrays, $symbol) = @_;
    $arrays = AI::Cohort::Arrays->of($arrays) unless blessed $arrays;
    cohort_initializer_apply($self->{handle}, handle_of($symbol, 'symbol'), handle_of($arrays, 'arrays'));
    return;
}

# Fills one array by the rule itself, whatever its name.
sub fill {
    my ($self, $name, $array) = @_;
    cohort_initializer_fill($self->{handle}, $name, handle_of($array, 'array'));
    return;
}

# As a variable's attribute __init__ has it.
sub dumps { JSON::PP->new->canonical->encode($_[0]{rule}) }

1;
