# SPDX-License-Identifier: Apache-2.0
package AI::Cohort::AutoGrad;
use strict;
use warnings;
use AI::Cohort::FFI;
use AI::Cohort::Arrays;
use Scalar::Util qw(blessed weaken);

# `use AI::Cohort::AutoGrad qw(autograd)` imports a function of this name that returns the class.
sub import {
    my ($class, @words) = @_;
    AI::Cohort::FFI::_word_for($class, scalar caller, @words);
}

# ---- the state ---------------------------------------------------------------------------------------------------------

our ($recording, $training) = (0, 0);

# The number of custom functions on the tape: a function may refer to the tape that refers to it.
my $functions_kept = 0;

# A weak reference: the tape lives as long as an array that was marked, or recorded, which refers to it in its field `tape`.
my $tape;

sub _tape {
    return $tape if $tape;
    cohort_tape_create(\my $handle);    # records, in training mode
    my $made = AI::Cohort::AutoGrad::Tape->adopt($handle, training => 1);
    weaken($tape = $made);
    return $made;
}

# The tape that applies operators now, set to the present mode; undef: none.
sub _active {
    return undef unless $recording && $tape;
    if ($tape->{training} != $training) {
        cohort_tape_set_training($tape->{handle}, $training, undef);
        $tape->{training} = $training;
    }
    return $tape;
}

# Applies an operator, through the tape if it is recording; returns the outputs.
sub _applied {
    my ($op, $settings, $inputs, $outputs, $is_train, %options) = @_;
    local $training = $is_train ? 1 : 0;
    my $by = _active();
    my $options = struct(cohort_invoke_options => %options, is_train => $by ? 0 : $is_train);
    my @given = ($op, attributes_of($settings), $inputs, scalar @$inputs, $outputs, scalar @$outputs, $options->{pointer});
    my $handle;
    if ($by) { cohort_tape_invoke($by->{handle}, @given, \$handle) }
    else { cohort_operator_invoke(@given, \$handle) }
    my $list = AI::Cohort::Arrays->adopt($handle);
    my $made = @$outputs ? $outputs : $list->list;
    _note($by, $inputs, $made) if $by;
    return $made;
}

# Arrays computed from known arrays are known to the tape.
sub _note {
    my ($by, $inputs, $outputs) = @_;
    return unless grep { $_->{tape} } @$inputs;
    $_->{tape} = $by for @$outputs;
}

# Whether gradients flow through operators on an array now.
sub _knows { $_[0]{tape} && _active() }

# Copies into another array while recording: with an operator, or between devices with a custom function.
sub _copied {
    my ($from, $to) = @_;
    return 0 unless _active();
    my ($dtype, $context) = ($from->dtype, $from->context);
    if ($context == $to->context || !grep { $_->device_type eq 'gpu' } $context, $to->context) {
        AI::Cohort::Operator::invoke($dtype eq $to->dtype ? '_copy' : 'Cast', $from,
            ($dtype eq $to->dtype ? () : (dtype => $to->dtype)), out => $to);
        return 1;
    }
    { local $recording = 0; $from->copyto($to) }
    AI::Cohort::AutoGrad->function([$from], [$to], sub { $_[0]->astype($dtype, $context) });
    return 1;
}

sub is_recording { $recording }
sub is_training { $training }

# Sets a flag and returns its previous value.
sub _set { my ($state, $value) = @_; my $before = $$state; $$state = $value ? 1 : 0; return $before }
sub set_is_recording { _set(\$recording, $_[1]) }
sub set_is_training { _set(\$training, $_[1]) }
sub set_recording { _set(\$recording, $_[1]) }
sub set_training { _set(\$training, $_[1]) }

sub _function {
    my ($what, $sub) = @_;
    invalid("$what: expected a function, found " . ($sub // 'undef'), $what) if ref $sub ne 'CODE';
    return $sub;
}

# Returns the function's result, and restores the previous mode however it ends.
sub _scope {
    my ($what, $records, $sub, @given) = @_;
    _function($what, $sub);
    my %given = (train_mode => $records, settings_of($what, ['train_mode'], @given));
    num_recorded() if $records && !$recording && $functions_kept;    # releases graphs that no array refers to
    local $recording = $records;
    local $training = defined $given{train_mode} ? $given{train_mode} ? 1 : 0 : $training;
    return $sub->();
}

sub record { my $class = shift; _scope('record', 1, @_) }
sub pause { my $class = shift; _scope('pause', 0, @_) }

sub train_mode { my ($class, $sub) = @_; _function('train_mode', $sub); local $training = 1; return $sub->() }
sub predict_mode { my ($class, $sub) = @_; _function('predict_mode', $sub); local $training = 0; return $sub->() }

# ---- variables -----------------------------------------------------------------------------------------------------------

my %grad_code = (null => COHORT_GRAD_NULL, write => COHORT_GRAD_WRITE, add => COHORT_GRAD_ADD);

# Arrays, of one or a list of them.
sub _arrays {
    my ($given, $what, $with_undef) = @_;
    my @arrays = blessed $given ? $given : @{list_of($given, $what)};
    for (@arrays) {
        next if !defined && $with_undef || blessed $_ && $_->isa('AI::Cohort::NDArray');
        invalid("$what: expected arrays, found " . ($_ // 'undef'), $what);
    }
    return \@arrays;
}

sub _as_many {
    my ($what, $num, $list) = @_;
    invalid("$what: expected $num, found " . @$list, $what) if @$list != $num;
    return $list;
}

sub mark_variables {
    my ($class, $variables, $gradients, @given) = @_;
    unshift @given, 'grad_reqs' if @given % 2;
    my %given = settings_of('mark_variables', ['grad_reqs'], @given);
    $variables = _arrays($variables, 'variables');
    $gradients = _as_many(gradients => scalar @$variables, _arrays($gradients, 'gradients', 1));
    my $reqs = $given{grad_reqs} // 'write';
    $reqs = _as_many(grad_reqs => scalar @$variables, ref $reqs ? list_of($reqs, 'grad_reqs') : [($reqs) x @$variables]);
    my @codes = map { $grad_code{$_ // ''} // invalid("grad_reqs: expected write, add or null, found " . ($_ // 'undef'), 'grad_reqs') } @$reqs;
    my $on = _tape();
    cohort_tape_mark($on->{handle}, $variables, $gradients, \@codes, scalar @$variables);
    for my $i (0 .. $#$variables) {
        my $is_marked = $codes[$i] != COHORT_GRAD_NULL;
        $variables->[$i]{grad} = $is_marked ? $gradients->[$i] : undef;
        $variables->[$i]{tape} = $on if $is_marked;
    }
    return;
}

# ---- gradients -----------------------------------------------------------------------------------------------------------

# The arguments of a pass: the tape, heads, head gradients, their number, options.
sub _pass {
    my ($what, $heads, %given) = @_;
    $heads = _arrays($heads, 'heads');
    my $grads = $given{head_grads} // $given{out_grads} // $given{out_grad};
    $grads = _as_many(head_grads => scalar @$heads, _arrays($grads, 'head_grads', 1)) if defined $grads;
    my $create = $given{create_graph} ? 1 : 0;
    my $options = struct(cohort_backward_options => create_graph => $create, retain_graph => $given{retain_graph} // $create ? 1 : 0);
    AI::Cohort::Error->throw(state => "$what: nothing is recorded", $what) unless $tape;
    return ($tape, $create, $heads, $grads, scalar @$heads, $options);
}

# Head gradients, retain_graph and train_mode are given by name, or in this order.
my @of_backward = qw(head_grads out_grads out_grad retain_graph create_graph train_mode);

sub _by_name {
    my ($what, @given) = @_;
    my $named = @given && defined $given[0] && !ref $given[0] && $given[0] =~ /[a-z]/;
    return settings_of($what, \@of_backward, @given) if $named;
    my @names = qw(head_grads retain_graph train_mode);
    invalid("$what: expected at most " . @names . ' values without names, found ' . @given, $what) if @given > @names;
    return map { $names[$_] => $given[$_] } 0 .. $#given;
}

# Whether custom functions that run in a pass are recorded: only if the pass is.
our $creating = 0;

sub backward {
    my ($class, $heads, @given) = @_;
    my ($on, $create, @pass) = _pass('backward', $heads, _by_name('backward', @given));
    my $options = pop @pass;
    local $creating = $create;
    cohort_tape_backward($on->{handle}, @pass, $options->{pointer});
    return;
}

sub compute_gradient { $_[0]->backward($_[1]) }

# With a function, returns one that computes its gradients; with heads, the gradients of some arrays.
sub grad {
    my ($class, $heads, $variables, @given) = @_;
    if (ref $heads eq 'CODE') {
        my $both = $class->grad_and_loss($heads, $variables, @given);
        return sub { ($both->(@_))[0] };
    }
    my $wanted = _arrays($variables, 'variables');
    my ($on, $create, @pass) = _pass('grad', $heads, _by_name('grad', @given));
    my $options = pop @pass;
    local $creating = $create;
    cohort_tape_grad($on->{handle}, @pass, $wanted, scalar @$wanted, $options->{pointer}, \my $handle);
    my $found = AI::Cohort::Arrays->adopt($handle)->list;
    if ($create) { $_->{tape} = $on for @$found }
    return blessed $variables ? $found->[0] : $found;
}

sub grad_and_loss {
    my ($class, $function, $which) = @_;
    _function('grad_and_loss', $function);
    return sub {
        my @arguments = @_;
        my @chosen = defined $which ? @arguments[ref $which ? @{list_of($which, 'argnum')} : $which] : @arguments;
        my $variables = _arrays(\@chosen, 'variables');
        my @gradients = map { $_->zeros_like } @$variables;
        $class->mark_variables($variables, \@gradients);
        my $outputs = $class->record(sub { scalar $function->(@arguments) });
        $class->backward($outputs);
        return (\@gradients, $outputs);
    };
}

sub get_symbol {
    my ($class, $array) = @_;
    $array = _as_many(array => 1, _arrays($array, 'array'))->[0];
    AI::Cohort::Error->throw(state => 'get_symbol: nothing is recorded', 'get_symbol') unless $tape;
    cohort_tape_symbol($tape->{handle}, $array->{handle}, \my $handle);
    return AI::Cohort::Symbol->adopt($handle);
}

sub num_recorded {
    return 0 unless $tape;
    cohort_tape_num_recorded($tape->{handle}, \my $num);
    return $num;
}

# ---- functions of the program's --------------------------------------------------------------------------------------------

sub function {
    my ($class, $inputs, $outputs, $sub) = @_;
    ($inputs, $outputs) = (_arrays($inputs, 'inputs'), _arrays($outputs, 'outputs'));
    _function('function', $sub);
    my $on = _active() or return;
    my $backward = sub {
        my ($heads, $takes) = map { AI::Cohort::Arrays->of_lent($_) } @_;
        # During a pass the tape only applies operators.
        local $recording = $creating;
        local $training = $tape->{training};
        $takes->add(undef, $_, 'gradients') for $sub->(@{$heads->list});
        return 0;
    };
    my ($functions, $id);
    ($functions, $id) = callbacks(
        backward => ['(opaque,opaque,opaque)->sint32' => $backward],
        release => ['(opaque)->void' => sub { $functions_kept--; AI::Cohort::FFI::release(forget_callback($id)) }],
    );
    $functions_kept++;
    eval {
        cohort_tape_function($on->{handle}, $inputs, scalar @$inputs, $outputs, scalar @$outputs, @$functions{qw(backward release)}, $id);
        1;
    } or do {
        my $error = $@;
        $functions_kept--;
        forget_callback($id);
        die $error;
    };
    _note($on, $inputs, $outputs);
    return;
}

package AI::Cohort::AutoGrad::Tape;
use AI::Cohort::FFI;
our @ISA = ('AI::Cohort::Handle');
sub free_handle { cohort_tape_free($_[1]) }

1;

__END__

=encoding UTF-8

=head1 NAME

AI::Cohort::AutoGrad - gradients of imperative computations

=head1 SYNOPSIS

    use AI::Cohort qw(mx);
    use AI::Cohort::AutoGrad qw(autograd);

    my $x = mx->nd->array([1, 2, 3]);
    $x->attach_grad;
    my $y = autograd->record(sub { ($x * $x)->sum });
    $y->backward;
    print "@{$x->grad->aslist}\n";    # 2 4 6

    # a gradient of a gradient
    my $z = autograd->record(sub { $x * $x * $x });
    my $dx = autograd->grad($z, $x, create_graph => 1);
    $dx->backward;
    print "@{$x->grad->aslist}\n";    # 6 12 18

=head1 DESCRIPTION

C<record> calls a function, during which operators on certain arrays are recorded: on arrays that have a gradient attached
(C<attach_grad>, C<mark_variables>), and on arrays computed from them. C<backward> computes the gradients backwards along the
recorded graph, and releases it.

Slices, copies, casts and concatenations are recorded like operators; C<< $x->slice([0, 1]) >> is then a copy, whose C<.=>,
C<+=> and the like write back into the array. Gradients flow back through views of a known array that were made outside, too.

A mark lasts as long as the array object it was set on; objects on the same memory, for example from C<reshape>, are the same
array. Arrays that a gradient needs must not be overwritten before it is computed; that is an error of class C<state>. Arrays
with an attached gradient may be overwritten outside C<record>, as optimizers do.

Executors, groups and managers are not recorded: they compute gradients themselves.

=head1 CLASS METHODS

C<< mx->autograd >> is this class, too.

=head2 record($sub, train_mode => 1), pause($sub, train_mode => 0)

Calls a function, with recording on or off, and returns its result. C<train_mode> says whether operators are applied as in
training; C<undef> leaves the mode.

=head2 train_mode($sub), predict_mode($sub)

Calls a function in which operators are applied as in training, or as in inference, recorded or not.

=head2 is_recording, is_training, set_is_recording($bool), set_is_training($bool), set_recording($bool), set_training($bool)

The present mode; the setters return the previous value.

=head2 mark_variables(\@arrays, \@gradients, grad_reqs => 'write')

Marks arrays as variables, whose gradients are written to the given arrays; C<undef>: to none, for C<grad> only. Requests are
C<write>, C<add> or C<null>, which removes the mark; one for all or a list.

=head2 backward($heads, head_grads => ..., retain_graph => 0, create_graph => 0)

Computes the gradients of all marked arrays that the heads, an array or a list, depend on. C<head_grads> is an array for each
head, or C<undef>: ones. C<retain_graph> keeps the recorded graph for another pass, C<create_graph> records the pass itself. The
first two may be given without names. C<train_mode> is accepted and ignored: each operator's gradient is that of the mode in
which it was applied.

=head2 compute_gradient(\@heads)

The same without options.

=head2 grad($heads, $variables, head_grads => ..., retain_graph => 0, create_graph => 0)

The gradients of some arrays, as new arrays: one for an array, a list for a list. Attached gradients are not changed.

=head2 grad($sub, $argnum), grad_and_loss($sub, $argnum)

Return functions that compute the gradients of a function's arguments, as a list; the second also returns the function's result.
C<$argnum>: an index, or a list of them, of the arguments that are arrays. These get new gradients attached.

=head2 get_symbol($array)

The recorded graph of an array as an L<AI::Cohort::Symbol>, with a variable for each input array.

=head2 function($inputs, $outputs, $sub)

Records a computation of the program's own, from inputs to outputs: each an array or a list. In a backward pass C<$sub> is
called with the gradients of the outputs, and returns those of the inputs; C<undef>: none. If it dies, the pass dies with the
same error. It may apply operators, but must not use this class otherwise. It is released by the pass that uses it or, once its
outputs are gone, by the next C<record>.

=head2 num_recorded

The number of recorded operators and functions through which a gradient could flow.

=cut
