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

AI::Cohort::CustomOp - custom operators

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

The operator C<Custom> with a registered C<op_type> is a node of symbols and of symbol JSON like any other, can be applied to
arrays, and is recorded (L<AI::Cohort::AutoGrad>). An object of this class belongs to one bound node; an
L<AI::Cohort::CustomOpProp> describes the nodes.

If a method dies, the call that it runs in dies with the same error: a bind, or a pass. The objects of that call stay usable.

=head1 METHODS

=head2 new(%fields)

Class method: an object with these fields.

=head2 forward($is_train, \@req, \@in_data, \@out_data, \@aux)

Writes all outputs; to be implemented by derived classes. The arrays are the library's working memory: they are gone when the
method returns. Operators may be applied; nothing is recorded.

=head2 backward(\@req, \@out_grad, \@in_data, \@out_data, \@in_grad, \@aux)

Writes the gradients of the inputs; those with a C<$req> of C<null> are not read. C<grad_req> is applied to them afterwards.
C<@out_grad> is empty for operators that need no head gradients. Without this method there is no backward pass through the
operator.

=head2 assign($array, $req, $value)

Writes an array as C<$req> says: C<write>, C<add>, or C<null>, which is nothing. The value is an array, a number, a PDL or an array ref.

=cut
