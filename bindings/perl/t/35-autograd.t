# SPDX-License-Identifier: Apache-2.0
# Gradients of imperative computations.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";
use AI::Cohort::AutoGrad qw(autograd);
use CohortTest;
use Test::More;

sub with_grad { my $array = nd(@_); $array->attach_grad; return $array }

test 'gradients flow back along what was recorded, and nothing else is' => sub {
    my $x = with_grad([1, 2, 3]);
    near($x->grad, [0, 0, 0]);
    my $outside = $x * 2;
    my $y = autograd->record(sub {
        is_deeply([autograd->is_recording, autograd->is_training], [1, 1]);
        my $paused = autograd->pause(sub {
            is_deeply([autograd->is_recording, autograd->is_training], [0, 0]);
            $x->exp;
        });
        $x * $x + 2 * $x - $paused;
    });
    is_deeply([autograd->is_recording, autograd->is_training], [0, 0]);
    is(autograd->num_recorded, 4);
    is(scalar @{autograd->get_symbol($y)->list_arguments}, 2, 'x, and what was computed in the pause');
    $y->backward;
    near($x->grad, [4, 6, 8]);
    is(autograd->num_recorded, 0, 'a pass lets go of what it went through');
    fails { $y->backward } 'state', qr/backward pass without retain_graph|not in a recorded graph/;
    fails { $outside->backward } 'state', qr/recorded graph/;
    is($outside->grad, undef);
};

test 'head gradients, requests to add, and passes that keep the graph' => sub {
    my ($x, $w) = (with_grad([1, 2]), nd([3, 4]));
    $w->attach_grad(grad_req => 'add');
    my ($y, $z) = autograd->record(sub { ($x * $w, $x + $w) });
    autograd->backward([$y, $z], head_grads => [nd([1, 10]), undef], retain_graph => 1);
    near($x->grad, [4, 41]);
    near($w->grad, [2, 21]);
    autograd->backward([$y, $z], [nd([1, 10]), undef]);
    near($w->grad, [4, 42], 'added');
    $y = autograd->record(sub { $x * $w });
    $y->backward(out_grad => nd([1, 1]), train_mode => 0);
    near($x->grad, [3, 4]);
    $w->attach_grad(grad_req => 'null');
    is($w->grad, undef, 'the mark is gone');
    autograd->record(sub { $x * $w })->backward;
    near($x->grad, [3, 4]);
};

test 'gradients of some arrays, and gradients of gradients' => sub {
    my $x = with_grad([1, 2]);
    my $y = autograd->record(sub { $x * $x * $x });
    my $dx = autograd->grad($y, $x, create_graph => 1);
    near($dx, [3, 12]);
    near($x->grad, [0, 0], 'what is attached is not touched');
    near(autograd->grad($dx, [$x])->[0], [6, 12]);
    my $second = autograd->grad(sub { ($_[0] * $_[1])->sum }, 1);
    near($second->(nd([2, 3]), nd([5, 7]))->[0], [2, 3]);
    my ($grads, $loss) = autograd->grad_and_loss(sub { $_[0]**2 })->(nd([2, 3]));
    near($grads->[0], [4, 6]);
    near($loss, [4, 9]);
};

test 'slices, copies, casts and concatenations are recorded' => sub {
    my $x = with_grad([[1, 2], [3, 4], [5, 6]]);
    my %one = (
        'a row' => [sub { $x->at(1) * nd([1, 10]) }, [0, 0, 1, 10, 0, 0]],
        'rows' => [sub { $x->slice([1, -1]) * 2 }, [0, 0, 2, 2, 2, 2]],
        'a range of two axes' => [sub { $x->slice([0, 1], 1) * 3 }, [0, 3, 0, 3, 0, 0]],
        'a range along an axis' => [sub { $x->slice_axis(axis => 0, begin => 2, end => 3) * 4 }, [0, 0, 0, 0, 4, 4]],
        'another shape' => [sub { $x->reshape([-1]) * nd([1, 2, 3, 4, 5, 6]) }, [1 .. 6]],
        'a copy' => [sub { $x->copy * 2 }, [(2) x 6]],
        'a cast' => [sub { $x->astype('float64') * 2 }, [(2) x 6]],
        'a copy on another device' => [sub { $x->as_in_context(mx->cpu(1)) * 2 }, [(2) x 6]],
        'what is written into an array' => [sub { my $into = mx->nd->zeros([3, 2]); $into .= $x * 2; $into * 3 }, [(6) x 6]],
        'what is written into rows' => [sub { my $into = mx->nd->ones([4, 2]); $into->slice([1, 3]) .= $x; $into * 3 }, [(3) x 6]],
        'what is written into a row' => [sub { my $into = mx->nd->ones([4, 2]); $into->at(1) .= $x->at(0); $into * 3 }, [3, 3, 0, 0, 0, 0]],
        'what is added to rows' => [sub { my $into = $x * 2; my $rows = $into->slice([1, 2]); $rows += $x->slice([0, 1]); $into }, [3, 3, 3, 3, 2, 2]],
        'what is added to rows of a constant' => [sub { my $into = mx->nd->ones([3, 2]); my $row = $into->at(1); $row += $x->at(0); $into * 2 }, [2, 2, 0, 0, 0, 0]],
        'a concatenation' => [sub { mx->nd->concatenate([$x, $x * 2]) * 2 }, [(6) x 6]],
        'a sum in place' => [sub { my $sum = $x * 2; $sum += $x; $sum }, [(3) x 6]],
        'a permutation' => [sub { $x->moveaxis(0, 1) * nd([[1, 2, 3], [4, 5, 6]]) }, [1, 4, 2, 5, 3, 6]],
    );
    for my $what (sort keys %one) {
        my ($sub, $expected) = @{$one{$what}};
        $x->grad->set(0);
        autograd->record($sub)->backward;
        near($x->grad, $expected, $what);
    }
    autograd->record(sub { my @rows = @$x; autograd->backward([@rows[0, 2]], [nd([7, 8]), undef]) });
    near($x->grad, [7, 8, 0, 0, 1, 1], 'rows as heads');
    my $constant = mx->nd->zeros([3]);
    autograd->record(sub { $constant->slice([0, 1]) .= 5; $constant->at(2) .= 1; my $row = $constant->slice(0); $row += 1 });
    near($constant, [6, 5, 1], 'what is written into a part of a constant stays there');
};

test 'what is detached is a constant' => sub {
    my $x = with_grad([1, 2]);
    my $y = autograd->record(sub { my $z = $x * 3; $z * $z->detach });
    near($y, [9, 36]);
    $y->backward;
    near($x->grad, [9, 18]);
};

test 'the mode is the one of the application' => sub {
    my $x = mx->nd->ones([100]);
    my $dropped = sub { my $y = $_[0]->Dropout(p => 0.5); scalar grep { $_ == 0 } @{$y->aslist} };
    is($dropped->($x), 0);
    ok(autograd->train_mode(sub { $dropped->($x) }), 'training without recording');
    $x->attach_grad;
    autograd->record(sub {
        ok($dropped->($x));
        is(autograd->predict_mode(sub { $dropped->($x) }), 0);
        is(autograd->pause(sub { $dropped->($x) }), 0);
        ok(autograd->pause(sub { $dropped->($x) }, train_mode => 1));
        my $y = $x->Dropout(p => 0.5);
        $y->backward;
        near($x->grad, $y->aslist, 'where an element was dropped nothing flows back');
    });
    is(autograd->record($dropped = sub { scalar grep { $_ == 0 } @{$x->Dropout(p => 0.5)->aslist} }, train_mode => 0), 0);
    is(autograd->set_training(1), 0);
    is(autograd->set_recording(1), 0);
    is_deeply([autograd->set_is_recording(0), autograd->set_is_training(0)], [1, 1]);
};

test 'a function that dies leaves the state as it was' => sub {
    my $x = with_grad([1]);
    is(eval { autograd->record(sub { my $y = $x * 2; die "no more\n" }); 1 }, undef);
    is($@, "no more\n");
    is(autograd->is_recording + autograd->is_training, 0);
    is_deeply([autograd->record(sub { (1, 2, 3) })], [1, 2, 3]);
    fails { autograd->record('sub') } 'invalid_argument', qr/expected a function/;
    fails { autograd->record(sub {}, mode => 1) } 'name', qr/mode/;
};

test 'functions of the program take part' => sub {
    my ($x, $w) = (with_grad([1, 2]), with_grad([3, 4]));
    my $doubled = sub {
        my ($in) = @_;
        my $out = autograd->pause(sub { $in * 2 });
        autograd->function($in, $out, sub { my ($grad) = @_; $grad * 2 });
        return $out;
    };
    autograd->record(sub { $doubled->($x) * $w })->backward;
    near($x->grad, [6, 8]);
    near($w->grad, [2, 4]);
    my $square = autograd->record(sub {
        my $out = autograd->pause(sub { $x * $x });
        autograd->function($x, $out, sub { my ($grad) = @_; $grad * $x * 2 });
        $out;
    });
    near(autograd->grad(autograd->grad($square, $x, create_graph => 1), $x), [2, 2], 'in a pass that is recorded, too');
    my $y = autograd->record(sub {
        my $out = mx->nd->ones([2]);
        autograd->function([$x, $w], [$out], sub { die {reason => 'tired'} });
        $out;
    });
    is(eval { $y->backward; 1 }, undef);
    is_deeply($@, {reason => 'tired'}, 'what it dies of, the pass dies of');
    undef $y;
    $y = autograd->record(sub { my $out = mx->nd->ones([2]); autograd->function([$x, $w], $out, sub { (undef, $_[0] * 3) }); $out });
    $y->backward;
    near($w->grad, [3, 3]);
    fails { autograd->record(sub { autograd->function($x, $x, sub {}) }) } 'invalid_argument', qr/overwrite a marked array/;
    $y = autograd->record(sub { my $out = mx->nd->ones([2]); autograd->function($x, $out, sub { () }); $out });
    fails { $y->backward } 'invalid_argument', qr/expected one for each of 1 inputs/;
};

test 'what overwrites a marked array, a head on another device and the like are refused' => sub {
    my $x = with_grad([[1, 2], [3, 4]]);
    my $row = $x->at(0);
    autograd->record(sub { $row * 2 })->backward;
    near($x->grad, [2, 2, 0, 0], 'a part of a known array');
    near($row * 2, [2, 4], 'outside it is an array');
    fails { autograd->record(sub { $x += 1 }) } 'invalid_argument', qr/marked array/;
    $x += 1;
    near($x, [2, 3, 4, 5], 'outside it may be overwritten');
    fails { $x->attach_grad(grad_req => 'keep') } 'invalid_argument', qr/keep/;
    fails { $x->attach_grad(stype => 'csr') } 'unsupported', qr/csr/;
    fails { autograd->mark_variables([$x], [nd([1])]) } 'shape', qr/shape/;
    fails { autograd->mark_variables([$x], []) } 'invalid_argument', qr/expected 1, found 0/;
    fails { mx->nd->zeros([2], dtype => 'int32')->attach_grad } 'dtype', qr/floating/;
    my $y = autograd->record(sub { $x * $x });
    fails { autograd->backward($y, [nd([1]), nd([2])]) } 'invalid_argument', qr/expected 1, found 2/;
    fails { $y->backward(nd([1])) } 'shape', qr/shape/;
    $x .= 0;
    fails { $y->backward } 'state', qr/overwritten/;
};

test 'a loop keeps neither handles nor functions' => sub {
    my $x = with_grad([1, 2]);
    my $step = sub {
        my $loss = autograd->record(sub {
            my $y = $x * $x;
            my $z = autograd->pause(sub { $y * 2 });
            autograd->function($y, $z, sub { $_[0] * 2 });
            ($z->slice([0, 1]) + 1)->sum;
        });
        $loss->backward;
        return $loss;
    };
    $step->();
    my ($handles, $functions) = (mx->live_handles, AI::Cohort::FFI::_num_callbacks());
    $step->() for 1 .. 50;
    is(mx->live_handles, $handles);
    is(AI::Cohort::FFI::_num_callbacks(), $functions);
    for (1 .. 3) {    # a function that refers to the array that refers to the tape
        autograd->record(sub { my $z = $x->detach; autograd->function($x, $z, sub { $_[0] * $x }); return });
    }
    autograd->record(sub { });
    is(AI::Cohort::FFI::_num_callbacks(), $functions);
    autograd->record(sub { my $z = $x * $x }) for 1 .. 1000;    # graphs that no array refers to
    cmp_ok(autograd->num_recorded, '<', 1000);
    is(mx->live_handles, $handles);
};

test 'a network learns' => sub {
    my ($w, $b) = (with_grad([[0]]), with_grad([0]));
    my ($x, $wanted) = (nd([[-2], [-1], [1], [2]]), nd([[-5], [-3], [1], [3]]));
    for (1 .. 100) {
        autograd->record(sub { ((mx->nd->FullyConnected($x, $w, $b, num_hidden => 1) - $wanted)**2)->mean })->backward;
        $_ -= $_->grad * 0.1 for $w, $b;
    }
    near([map { sprintf '%.3f', $_->asscalar } $w, $b], [2, -1]);
};

finish();
