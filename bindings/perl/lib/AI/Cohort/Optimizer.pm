# SPDX-License-Identifier: Apache-2.0
package AI::Cohort::Optimizer;
use strict;
use warnings;
use AI::Cohort::FFI;
use AI::Cohort::Executor;

our @ISA = ('AI::Cohort::Handle');

sub free_handle { cohort_optimizer_free($_[1]) }

# lr_scheduler is [name, its settings]; the others are the optimizer's settings.
sub create {
    my ($class, $name, @given) = @_;
    my %given = settings_of('optimizer', undef, @given);
    my $schedule = delete $given{lr_scheduler};
    cohort_optimizer_create($name, attributes_of(\%given), \my $handle);
    my $self = $class->adopt($handle);
    $self->set_lr_schedule(@{list_of($schedule, 'lr_scheduler')}) if defined $schedule;
    return $self;
}

sub new { my $class = shift; $class->create(@_) }

# The names of their classes in AI::MXNet.
for my $name (qw(SGD ccSGD NAG Signum Adam AdamW Adamax Nadam AdaDelta RMSProp AdaGrad GroupAdaGrad Ftrl FTML DCASGD LAMB LARS LBSGD SGLD Test)) {
    no strict 'refs';
    *$name = sub { my $class = shift; $class->create(lc $name, @_) };
}

sub get {
    my ($self, $key) = @_;
    cohort_optimizer_get($self->{handle}, $key, \my $value);
    return $value;
}

sub set {
    my ($self, @given) = @_;
    my %settings = settings_of('optimizer', undef, @given);
    cohort_optimizer_set($self->{handle}, $_, $settings{$_}) for sort keys %settings;
    return $self;
}

sub lr { $_[0]->get('learning_rate') }
sub num_update { $_[0]->get('num_update') }

sub set_lr_schedule {
    my ($self, $name, @given) = @_;
    my %settings = settings_of('set_lr_schedule', undef, @given);
    cohort_optimizer_set_lr_schedule($self->{handle}, $name, attributes_of(\%settings));
    return $self;
}

sub use_symbol {
    my ($self, $symbol) = @_;
    cohort_optimizer_use_symbol($self->{handle}, handle_of($symbol, 'symbol'));
    return $self;
}

# Multipliers of the learning rate and of the weight decay; undef: not set.
sub set_mult {
    my ($self, $param, $lr_mult, $wd_mult) = @_;
    cohort_optimizer_set_mult($self->{handle}, $param, $lr_mult // -1, $wd_mult // -1);
    return $self;
}

sub mult {
    my ($self, $param) = @_;
    cohort_optimizer_mult($self->{handle}, $param, \my $lr, \my $wd);
    return ($lr, $wd);
}

sub update {
    my ($self, $param, $weight, $grad, $copy) = @_;
    cohort_optimizer_update($self->{handle}, $param, $copy // 0, handle_of($weight, 'weight'), handle_of($grad, 'grad'));
    return;
}

sub save_states { cohort_optimizer_save_states($_[0]{handle}, $_[1]) }
sub load_states { cohort_optimizer_load_states($_[0]{handle}, $_[1]) }

sub states { AI::Cohort::FFI::_bytes_from(\&cohort_optimizer_save_states_memory, $_[0]{handle}) }

sub loss_scale { AI::Cohort::Executor::_loss_scale_from(\&cohort_optimizer_loss_scale, $_[0]{handle}) }

sub set_states { AI::Cohort::FFI::_bytes_to(\&cohort_optimizer_load_states_memory, $_[0]{handle}, $_[1], 'states') }

1;

__END__

=encoding UTF-8

=head1 NAME

AI::Cohort::Optimizer - rules that update parameters from gradients

=head1 SYNOPSIS

    use AI::Cohort qw(mx);
    my $adam = mx->opt->create('adam', learning_rate => 0.01, lr_scheduler => [cosine => max_update => 100, warmup_steps => 10]);
    my ($weight, $grad) = (mx->nd->ones([3]), mx->nd->ones([3]));
    $adam->update('weight', $weight, $grad);
    printf "%d update, next learning rate %.4f\n", $adam->num_update, $adam->lr;

=head1 DESCRIPTION

Groups and managers update all their parameters with C<< $group->update($optimizer) >>.

=head1 METHODS

=head2 create($name, %settings), new($name, %settings)

Class methods: C<sgd> (momentum), C<nag>, C<adam>, C<adamw> (beta1, beta2, epsilon), C<rmsprop> (gamma1, gamma2, epsilon,
centered, clip_weights), C<adagrad> (epsilon), and all others of C<cohort/optimizer.h>, which documents their settings. All take
C<learning_rate>, C<wd>, C<rescale_grad>, C<clip_gradient>, C<begin_num_update>, and C<lr_scheduler>: a list of a schedule's
name and its settings.

=head2 SGD, ccSGD, NAG, Signum, Adam, AdamW, Adamax, Nadam, AdaDelta, RMSProp, AdaGrad, GroupAdaGrad, Ftrl, FTML, DCASGD, LAMB, LARS, LBSGD, SGLD, Test

Class methods: the same by name, C<< mx->opt->SGD(learning_rate => 0.1) >>.

=head2 update($param, $weight, $grad, $copy = 0)

Updates one parameter. States are kept by its name, and by C<$copy> if there are several.

=head2 get($setting), set(%settings)

Reads a setting as a number; changes settings from the next update on.

=head2 lr, num_update

The learning rate of the next update; the number of updates of the parameter updated most often.

=head2 set_lr_schedule($name, %settings)

Sets a schedule for the learning rate: C<constant>, C<factor> (step, factor, stop_factor_lr), C<multifactor> (step, factor),
C<poly> (max_update, pwr, final_lr), C<cosine> (max_update, final_lr), each with C<warmup_steps>, C<warmup_begin_lr>,
C<warmup_mode>. C<undef>: none.

=head2 use_symbol($symbol)

Uses the C<lr_mult> and C<wd_mult> of a symbol's variables.

=head2 set_mult($param, $lr_mult, $wd_mult), mult($param)

Sets and reads the multipliers of a parameter.

=head2 loss_scale

The loss scale of the group or manager that it updated last, in the form of L<AI::Cohort::Executor::Group/loss_scale>. It is
saved with the states.

=head2 save_states($path), load_states($path), states, set_states($bytes)

Writes and reads states and counts, in a file or as a string of bytes, so that training can be resumed.

=cut
