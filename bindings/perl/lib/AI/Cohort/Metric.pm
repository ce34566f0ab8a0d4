# SPDX-License-Identifier: Apache-2.0
package AI::Cohort::Metric;
use strict;
use warnings;
use AI::Cohort::FFI;
use AI::Cohort::Arrays;
use Scalar::Util qw(blessed);

our @ISA = ('AI::Cohort::Handle');

sub free_handle {
    my ($self, $handle) = @_;
    cohort_metric_free($handle);
    forget_callback($self->{callback_id});
}

# A metric by name; of a list one that takes them all; of a function one that it computes.
sub create {
    my ($class, $kind, %given) = @_;
    return $class->composite(@$kind) if ref $kind eq 'ARRAY';
    return $class->custom($kind, %given) if ref $kind eq 'CODE';
    return $kind if blessed $kind && $kind->isa(__PACKAGE__);
    my %names = map { $_ => delete $given{$_} } grep { exists $given{$_} } qw(label_names output_names);
    cohort_metric_create($kind, attributes_of(\%given), \my $handle);
    my $self = $class->adopt($handle);
    $self->set_names(%names) if %names;
    return $self;
}

sub new { my $class = shift; $class->create(@_) }

sub composite {
    my ($class, @children) = @_;
    my $self = $class->create('composite');
    $self->add($_) for @children;
    return $self;
}

# The function is given label and prediction of one pair, as PDLs, and returns a value, or [sum, number].
sub custom {
    my ($class, $function, %given) = @_;
    my $take = $given{arrays} ? sub { $_[0] } : sub { $_[0]->aspdl };
    my $id;
    my $sub = sub {
        my ($labels, $num_labels, $preds, $num_preds, $sum_at, $num_at) = @_;
        my @labels = map { AI::Cohort::NDArray->share($_) } @{lent($labels, $num_labels)};
        my @preds = map { AI::Cohort::NDArray->share($_) } @{lent($preds, $num_preds)};
        my ($sum, $num) = (0, 0);
        for my $i (0 .. ($#labels < $#preds ? $#labels : $#preds)) {
            my $value = $function->($take->($labels[$i]), $take->($preds[$i]));
            $sum += ref $value eq 'ARRAY' ? $value->[0] : $value;
            $num += ref $value eq 'ARRAY' ? $value->[1] : 1;
        }
        AI::Cohort::FFI::write_at($sum_at, pack 'd', $sum);
        AI::Cohort::FFI::write_at($num_at, pack 'd', $num);
        return 0;
    };
    (my $callback, $id) = callback('(opaque,size_t,opaque,size_t,opaque,opaque,opaque)->sint32', $sub);
    my $self = $class->adopt(0, callback_id => $id);
    cohort_metric_create_custom($given{name} // 'custom', $callback, $id, $given{allow_extra_outputs} ? 1 : 0, \my $handle);
    $self->{handle} = $handle;
    return $self;
}

sub CustomMetric {
    my ($class, @given) = @_;
    unshift @given, 'eval_function' if @given % 2;
    my %given = @given;
    my $function = delete $given{eval_function} // delete $given{feval};
    invalid('CustomMetric: eval_function is missing', 'eval_function') if ref $function ne 'CODE';
    return $class->custom($function, %given);
}

sub add {
    my ($self, $child) = @_;
    $child = (ref $self)->create($child);
    cohort_metric_add($self->{handle}, $child->{handle});
    push @{$self->{children}}, $child;    # which may compute by a function of Perl's
    return $self;
}

sub children { @{$_[0]{children} || []} }

sub get_metric {
    my ($self, $index) = @_;
    cohort_metric_child($self->{handle}, $index, \my $handle);    # says what is wrong with the index
    (ref $self)->adopt($handle);
    return $self->{children}[$index];
}

sub set_names {
    my ($self, %names) = @_;
    my ($labels, $outputs) = map { $names{$_} || [] } qw(label_names output_names);
    cohort_metric_set_names($self->{handle}, $labels, scalar @$labels, $outputs, scalar @$outputs);
    return;
}

sub update {
    my ($self, $labels, $preds) = @_;
    my ($l, $p) = map { handles_of(AI::Cohort::Executor::Group::arrays_of_batch($_) || [], 'metric') } $labels, $preds;
    cohort_metric_update($self->{handle}, $l, scalar @$l, $p, scalar @$p);
    return;
}

# By name: see label_names and output_names.
sub update_dict {
    my ($self, $labels, $preds) = @_;
    my ($l, $p) = (AI::Cohort::Arrays->of($labels, 'labels'), AI::Cohort::Arrays->of($preds, 'preds'));
    cohort_metric_update_named($self->{handle}, handle_of($l), handle_of($p));
    return;
}

sub reset { cohort_metric_reset($_[0]{handle}) }
sub reset_local { cohort_metric_reset_local($_[0]{handle}) }

sub num_values {
    my ($self) = @_;
    cohort_metric_num_values($self->{handle}, \my $num);
    return $num;
}

sub figures {
    my ($self, $global) = @_;
    my @figures = map { cohort_metric_value($self->{handle}, $_, $global, \my $name, \my $value); [$name, $value] } 0 .. $self->num_values - 1;
    return @{$figures[0]} if @figures == 1 && !$self->{children};
    return ([map { $_->[0] } @figures], [map { $_->[1] } @figures]);
}

# (name, value), or of a composite metric ([names], [values]).
sub get { $_[0]->figures(0) }
sub get_global { $_[0]->figures(1) }

sub get_name_value {
    my ($self) = @_;
    my ($names, $values) = $self->get;
    return [[$names, $values]] unless ref $names;
    return [map { [$names->[$_], $values->[$_]] } 0 .. $#$names];
}

sub counter {
    my ($self, $which, $global) = @_;
    cohort_metric_counters($self->{handle}, 0, $global, \my $sum, \my $num);
    return $which eq 'sum' ? $sum : $num;
}

sub name { my ($names) = $_[0]->get; $names }
sub value { my (undef, $values) = $_[0]->get; $values }
sub sum_metric { $_[0]->counter('sum', 0) }
sub num_inst { $_[0]->counter('num', 0) }

1;
