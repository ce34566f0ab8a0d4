# SPDX-License-Identifier: Apache-2.0
package AI::Cohort::AutoGrad;
use strict;
use warnings;
use AI::Cohort::FFI;
use AI::Cohort::Arrays;
use Scalar::Util qw(blessed weaken);

# `use AI::Cohort::AutoGrad qw(autograd)` gives the program a word for this class.
sub import {
    my ($class, @words) = @_;
    AI::Cohort::FFI::_word_for($class, scalar caller, @words);
}

# ---- the state ---------------------------------------------------------------------------------------------------------

our ($recording, $training) = (0, 0);

# What a function holds may hold the tape that holds the function.
my $functions_kept = 0;

# Weak: the tape lives as long as an array that was marked or made while it recorded, in whose field `tape` it is.
my $tape;

sub _tape {
    return $tape if $tape;
    cohort_tape_create(\my $handle);    # records, in training mode
    my $made = AI::Cohort::AutoGrad::Tape->adopt($handle, training => 1);
    weaken($tape = $made);
    return $made;
}

# The tape that operators go by now, in the mode of now; undef: by none.
sub _active {
    return undef unless $recording && $tape;
    if ($tape->{training} != $training) {
        cohort_tape_set_training($tape->{handle}, $training, undef);
        $tape->{training} = $training;
    }
    return $tape;
}

# Applies an operator, by the tape if something is recorded: the outputs.
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

# What was made of something known is known.
sub _note {
    my ($by, $inputs, $outputs) = @_;
    return unless grep { $_->{tape} } @$inputs;
    $_->{tape} = $by for @$outputs;
}

# Whether gradients may flow through an array now.
sub _knows { $_[0]{tape} && _active() }

# A copy into another array, if something is recorded: the operator, or between devices a function.
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

# What it was before.
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

# What the function gives; the state of before comes back however it ends.
sub _scope {
    my ($what, $records, $sub, @given) = @_;
    _function($what, $sub);
    my %given = (train_mode => $records, settings_of($what, ['train_mode'], @given));
    num_recorded() if $records && !$recording && $functions_kept;    # lets go of what nobody can go back through
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

# Arguments of a pass: the tape, heads, head gradients, their number, options.
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

# Head gradients, retain_graph and train_mode come by name, or in this order.
my @of_backward = qw(head_grads out_grads out_grad retain_graph create_graph train_mode);

sub _by_name {
    my ($what, @given) = @_;
    my $named = @given && defined $given[0] && !ref $given[0] && $given[0] =~ /[a-z]/;
    return settings_of($what, \@of_backward, @given) if $named;
    my @names = qw(head_grads retain_graph train_mode);
    invalid("$what: expected at most " . @names . ' values without names, found ' . @given, $what) if @given > @names;
    return map { $names[$_] => $given[$_] } 0 .. $#given;
}

# Whether functions of the program's that run in a pass are recorded: those of a pass that is.
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

# Of a function one that computes its gradients; of heads the gradients of some arrays.
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
        # A pass is under way, in which the tape does nothing but apply operators.
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

AI::Cohort::AutoGrad - gradients of what is computed with arrays

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

While the function that C<record> is given runs, operators that are applied to arrays are recorded: those that an array goes into which
has a gradient attached (C<attach_grad>, C<mark_variables>), or what was made of one. C<backward> computes the gradients back along
them, and lets go of what it went through.

Slices, copies, casts and concatenations are recorded like operators; C<< $x->slice([0, 1]) >> is a copy then, which C<.=>, C<+=> and the
like write back. A view that was made outside is refused as an input, if the array is one that is known: take it inside.

A mark lasts as long as the array object that it was given with; objects of the same memory, such as C<reshape> makes, are the same
array. What was recorded must not be overwritten before the gradient was computed from it: that is an error of class C<state> where the
gradient needs it. Arrays with a gradient may be overwritten outside of C<record>, as optimizers do.

Executors, groups and managers are not recorded: they have gradients of their own.

=head1 CLASS METHODS

C<< mx->autograd >> is this class, too.

=head2 record($sub, train_mode => 1), pause($sub, train_mode => 0)

Calls a function, in which operators are recorded, or are not, and returns what it gives. C<train_mode> is whether they are applied as
in training; C<undef> leaves that as it is.

=head2 train_mode($sub), predict_mode($sub)

Calls a function, in which operators are applied as in training, or as in inference, recorded or not.

=head2 is_recording, is_training, set_is_recording($bool), set_is_training($bool), set_recording($bool), set_training($bool)

The state; what it was before.

=head2 mark_variables(\@arrays, \@gradients, grad_reqs => 'write')

The arrays want gradients, which these arrays take; C<undef>: none, for C<grad> alone. Requests are C<write>, C<add> or C<null>, which
takes the mark away; one for all or a list.

=head2 backward($heads, head_grads => ..., retain_graph => 0, create_graph => 0)

The gradients of all marked arrays of which the heads, an array or a list, were made. C<head_grads> is an array for each head, or
C<undef>: ones. With C<retain_graph> what was recorded stays for another pass, with C<create_graph> the pass is recorded itself. The first
two may come without names. C<train_mode> is taken and not read: the gradient of an operator is that of the mode in which it was
applied.

=head2 compute_gradient(\@heads)

The same without options.

=head2 grad($heads, $variables, head_grads => ..., retain_graph => 0, create_graph => 0)

The gradients of some arrays, as new ones: one of an array, a list of a list. Those that are attached are not touched.

=head2 grad($sub, $argnum), grad_and_loss($sub, $argnum)

Functions that compute the gradients of a function's arguments, as a list; and those and what the function gives. C<$argnum>: an index, or
a list of them, of the arguments that are arrays. These get new gradients attached.

=head2 get_symbol($array)

The L<AI::Cohort::Symbol> of what an array was made of, with a variable for each array that goes into it.

=head2 function($inputs, $outputs, $sub)

Records what the program has computed itself, from inputs to outputs: each an array or a list. In a backward pass C<$sub> is called with
the gradients of the outputs, and returns those of the inputs; C<undef>: none. What it dies of, the pass dies of. It may apply operators,
and use this class in no other way. It is let go of by the pass that goes through it, or else, when what it made is gone, by the
next C<record>.

=head2 num_recorded

How many operators and functions are recorded that a gradient could flow through.

=cut
