# SPDX-License-Identifier: Apache-2.0
package AI::Cohort::Optimizer;
use strict;
use warnings;
use AI::Cohort::FFI;
use FFI::Platypus::Buffer qw(scalar_to_pointer);

our @ISA = ('AI::Cohort::Handle');

sub free_handle { cohort_optimizer_free($_[1]) }

# lr_scheduler is [name, its settings]; the rest are the optimizer's.
sub create {
    my ($class, $name, %given) = @_;
    my $schedule = delete $given{lr_scheduler};
    cohort_optimizer_create($name, attributes_of(\%given), \my $handle);
    my $self = $class->adopt($handle);
    $self->set_lr_schedule(@$schedule) if $schedule;
    return $self;
}

sub new { my $class = shift; $class->create(@_) }

sub get {
    my ($self, $key) = @_;
    cohort_optimizer_get($self->{handle}, $key, \my $value);
    return $value;
}

sub set {
    my ($self, %settings) = @_;
    cohort_optimizer_set($self->{handle}, $_, $settings{$_}) for sort keys %settings;
    return $self;
}

sub lr { $_[0]->get('learning_rate') }
sub num_update { $_[0]->get('num_update') }

sub set_lr_schedule {
    my ($self, $name, %settings) = @_;
    cohort_optimizer_set_lr_schedule($self->{handle}, $name, attributes_of(\%settings));
    return $self;
}

sub use_symbol {
    my ($self, $symbol) = @_;
    cohort_optimizer_use_symbol($self->{handle}, handle_of($symbol, 'symbol'));
    return $self;
}

# Of the learning rate and of the weight decay; undef: as if not set.
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

sub states {
    my ($self) = @_;
    cohort_optimizer_save_states_memory($self->{handle}, undef, 0, \my $bytes);
    my $memory = "\0" x $bytes;
    cohort_optimizer_save_states_memory($self->{handle}, scalar_to_pointer($memory), $bytes, undef);
    return $memory;
}

sub set_states {
    my ($self, $memory) = @_;
    cohort_optimizer_load_states_memory($self->{handle}, scalar_to_pointer($memory), length $memory);
    return;
}

1;
