# SPDX-License-Identifier: Apache-2.0
package AI::Cohort::CustomOp;
use strict;
use warnings;
use AI::Cohort::FFI;
use AI::Cohort::NDArray;
use Scalar::Util qw(blessed);

sub new {
    my ($class, @given) = @_;
    return bless {settings_of($class, undef, @given)}, $class;
}

sub forward {
    my ($self) = @_;
    AI::Cohort::Error->throw(unsupported => ref($self) . ' has no forward', 'forward');
}

sub backward {
    my ($self) = @_;
    AI::Cohort::Error->throw(unsupported => ref($self) . ' has no backward', 'backward');
}

# Writes an array as req says.
sub assign {
    my ($self, $to, $req, $from) = @_;
    invalid('assign: expected an array, found ' . ($to // 'undef'), 'assign') unless blessed $to && $to->isa('AI::Cohort::NDArray');
    $req //= 'write';
    return if $req eq 'null';
    return $to->set($from) if $req ne 'add';
    $from = AI::Cohort::NDArray->array($from, dtype => $to->dtype, ctx => $to->context) if ref $from;
    return $to += $from;
}

1;

__END__

=encoding UTF-8

=head1 NAME

AI::Cohort::CustomOp - operators of the program's own

=head1 SYNOPSIS

    use AI::Cohort qw(mx);

    {
        package Scaled;
        our @ISA = ('AI::Cohort::CustomOp');

        sub forward {
            my ($self, $is_train, $req, $in, $out, $aux) = @_;
            $self->assign($out->[0], $req->[0], $in->[0] * $self->{by});
        }

        sub backward {
            my ($self, $req, $out_grad, $in, $out, $in_grad, $aux) = @_;
            $self->assign($in_grad->[0], $req->[0], $out_grad->[0] * $self->{by});
        }

        package ScaledProp;
        our @ISA = ('AI::Cohort::CustomOpProp');

        sub create_operator { my ($self, $ctx, $shapes, $dtypes) = @_; Scaled->new(by => $self->{by}) }
    }

    ScaledProp->register('scaled');
    my $net = mx->sym->Custom(mx->sym->Variable('data'), op_type => 'scaled', by => 3, name => 'three');
    my $y = mx->nd->Custom(mx->nd->array([1, 2]), op_type => 'scaled', by => 3);
    print "@{$y->aslist}\n";    # 3 6
    ScaledProp->unregister('scaled');

=head1 DESCRIPTION

The operator C<Custom> with an C<op_type> that was registered is a node of symbols and of symbol JSON like any other, can be applied to
arrays, and is recorded (L<AI::Cohort::AutoGrad>). An object of this class is what belongs to one bound node, an
L<AI::Cohort::CustomOpProp> says what nodes have.

What a method dies of, the call dies of in which it runs: the one that binds, or runs a pass. What the call worked on is usable
afterwards.

=head1 METHODS

=head2 new(%fields)

Class method: an object with these fields.

=head2 forward($is_train, \@req, \@in_data, \@out_data, \@aux)

Writes the outputs, all of them. To be written by classes of the program's. The arrays are the library's working memory: they are not
there any more when the method has returned. Operators may be applied, nothing that is done here is recorded.

=head2 backward(\@req, \@out_grad, \@in_data, \@out_data, \@in_grad, \@aux)

Writes the gradients of the inputs; those with a C<$req> of C<null> nobody reads. What a C<grad_req> asks for is done with them
afterwards. C<@out_grad> is empty for operators that need no head gradients. Left out: there is no backward pass through the operator.

=head2 assign($array, $req, $value)

Writes an array as C<$req> says: C<write>, C<add>, or C<null>, which is nothing. The value is an array, a number, a PDL or an array ref.

=cut
