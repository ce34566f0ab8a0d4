#!/usr/bin/env perl
# SPDX-License-Identifier: Apache-2.0
# Tells points of an inner ring from those of an outer one: gradients of what is computed with arrays, through an operator of
# this program's own.
#   perl -Ilib examples/train_rings.pl [--epochs 60] [--lr 0.5] [--seed 1]
use strict;
use warnings;
use AI::Cohort qw(mx);
use AI::Cohort::AutoGrad qw(autograd);
use Getopt::Long;

my %option = (epochs => 60, lr => 0.5, seed => 1);
GetOptions(\%option, qw(epochs=i lr=f seed=i)) or exit 2;

# x * sigmoid(x), and its gradient.
package Swish {
    our @ISA = ('AI::Cohort::CustomOp');

    sub forward {
        my ($self, $is_train, $req, $in, $out) = @_;
        $self->{gate} = $in->[0]->sigmoid;
        $self->assign($out->[0], $req->[0], $in->[0] * $self->{gate});
    }

    sub backward {
        my ($self, $req, $out_grad, $in, $out, $in_grad) = @_;
        my $slope = $self->{gate} + $out->[0] * (1 - $self->{gate});
        $self->assign($in_grad->[0], $req->[0], $out_grad->[0] * $slope);
    }
}

package SwishProp {
    our @ISA = ('AI::Cohort::CustomOpProp');
    sub create_operator { Swish->new }
}

SwishProp->register('swish');

# Points at a distance of 0.5 to 1 from the centre, or of 1.5 to 2.
my $num = 256;
my $angle = mx->nd->empty([$num])->uniform(0, 6.2832, $option{seed});
my $label = mx->nd->arange($num) % 2;
my $distance = mx->nd->empty([$num])->uniform(0.5, 1, $option{seed} + 1) + $label;
my $points = mx->nd->stack($angle->cos * $distance, $angle->sin * $distance, axis => 1);

my @weights = (
    mx->nd->empty([16, 2])->normal(0, 0.5, $option{seed} + 2), mx->nd->zeros([16]),
    mx->nd->empty([2, 16])->normal(0, 0.5, $option{seed} + 3), mx->nd->zeros([2]),
);
$_->attach_grad for @weights;

sub scores {
    my ($x) = @_;
    my $hidden = mx->nd->FullyConnected($x, @weights[0, 1], num_hidden => 16);
    return mx->nd->FullyConnected(mx->nd->Custom($hidden, op_type => 'swish'), @weights[2, 3], num_hidden => 2);
}

for my $epoch (1 .. $option{epochs}) {
    my $loss = autograd->record(sub { -mx->nd->pick(scores($points)->log_softmax, $label)->mean });
    $loss->backward;
    $_ -= $_->grad * $option{lr} for @weights;
    printf "epoch %d: loss %.4f\n", $epoch, $loss->asscalar if $epoch % 10 == 0;
}
my $right = (scores($points)->argmax(axis => 1) == $label)->mean->asscalar;
printf "accuracy: %.3f\n", $right;
SwishProp->unregister('swish');
