# SPDX-License-Identifier: Apache-2.0
package AI::Cohort::Metric;
use strict;
use warnings;
use AI::Cohort::FFI;
use AI::Cohort::Arrays;
use Scalar::Util qw(blessed);

our @ISA = ('AI::Cohort::Handle');

sub free_handle { cohort_metric_free($_[1]) }

# A metric by name; from a list a composite; from a function a custom one.
sub create {
    my ($class, $kind, @given) = @_;
    my %given = settings_of('metric', undef, @given);
    return $class->composite(map { $class->create($_, %given) } @$kind) if ref($kind // '') eq 'ARRAY';
    return $class->custom($kind, %given) if ref($kind // '') eq 'CODE';
    return $kind if blessed $kind && $kind->isa(__PACKAGE__);
    my %names = map { $_ => delete $given{$_} } grep { exists $given{$_} } qw(label_names output_names);
    cohort_metric_create($kind, attributes_of(\%given), \my $handle);
    my $self = $class->adopt($handle);
    $self->set_names(%names) if %names;
    return $self;
}

sub new { my $class = shift; $class->create(@_) }

# The names of their classes in AI::MXNet.
my %kind_of_class = (Accuracy => 'accuracy', TopKAccuracy => 'top_k_accuracy', F1 => 'f1', MAE => 'mae', MSE => 'mse', RMSE => 'rmse',
    CrossEntropy => 'cross-entropy', Perplexity => 'perplexity');
for my $name (keys %kind_of_class) {
    no strict 'refs';
    *$name = sub { my $class = shift; $class->create($kind_of_class{$name}, @_) };
}

sub composite {
    my ($class, @children) = @_;
    my $self = $class->create('composite');
    $self->add($_) for @children;
    return $self;
}

# The function is given label and prediction of one pair, as PDLs, and returns a value, or [sum, count].
sub custom {
    my ($class, $function, @given) = @_;
    invalid('metric: expected a function, found ' . ($function // 'undef'), 'function') if ref $function ne 'CODE';
    my %given = settings_of('metric', [qw(name arrays allow_extra_outputs)], @given);
    my $take = $given{arrays} ? sub { $_[0] } : sub { $_[0]->aspdl };
    my $all = sub {
        my ($labels, $preds) = @_;
        my ($sum, $num) = (0, 0);
        for my $i (0 .. ($#$labels < $#$preds ? $#$labels : $#$preds)) {
            my $value = $function->($take->($labels->[$i]), $take->($preds->[$i]));
            $sum += ref $value eq 'ARRAY' ? $value->[0] : $value;
            $num += ref $value eq 'ARRAY' ? $value->[1] : 1;
        }
        return ($sum, $num);
    };
    return $class->_of_function($all, $given{name} // 'custom', $given{allow_extra_outputs} ? 1 : 0);
}

# The function is given labels and predictions of an update, and returns sum and count.
sub _of_function {
    my ($class, $function, $name, $allow_extra_outputs) = @_;
    my $sub = sub {
        my ($labels, $num_labels, $preds, $num_preds, $sum_at, $num_at) = @_;
        my @lists = map { [map { AI::Cohort::NDArray->share($_) } @$_] } lent($labels, $num_labels), lent($preds, $num_preds);
        my ($sum, $num) = $function->(@lists);
        AI::Cohort::FFI::write_at($sum_at, pack 'd', $sum);
        AI::Cohort::FFI::write_at($num_at, pack 'd', $num);
        return 0;
    };
    my ($callback, $id) = callback('(opaque,size_t,opaque,size_t,opaque,opaque,opaque)->sint32', $sub);
    my $self = bless {callback_id => $id}, $class;
    cohort_metric_create_custom($name, $callback, $id, $allow_extra_outputs, \my $handle);
    $self->{handle} = $handle;
    return $self;
}

# The metric for groups and managers to update: a metric itself, or for another object with update($labels, $predictions) one
# that calls it.
sub _of {
    my ($class, $metric) = @_;
    return $metric if blessed $metric && $metric->isa(__PACKAGE__);
    invalid('update_metric: expected a metric, found ' . ($metric // 'undef'), 'eval_metric')
        unless blessed $metric && $metric->can('update');
    return $class->_of_function(sub { $metric->update(@_); return (0, 0) }, ref $metric, 1);
}

sub CustomMetric {
    my ($class, @given) = @_;
    unshift @given, 'eval_function' if @given % 2;
    my %given = settings_of('CustomMetric', [qw(eval_function feval name arrays allow_extra_outputs)], @given);
    my $function = delete $given{eval_function} // delete $given{feval};
    invalid('CustomMetric: eval_function is missing', 'eval_function') if ref $function ne 'CODE';
    return $class->custom($function, %given);
}

sub add {
    my ($self, $child) = @_;
    $child = (ref $self)->create($child);
    cohort_metric_add($self->{handle}, $child->{handle});
    push @{$self->{children}}, $child;    # it may call a Perl function
    return $self;
}

sub children { @{$_[0]{children} || []} }

sub get_metric {
    my ($self, $index) = @_;
    cohort_metric_child($self->{handle}, $index, \my $handle);    # reports an invalid index
    (ref $self)->adopt($handle);
    return $self->{children}[$index];
}

sub set_names {
    my ($self, @given) = @_;
    my %names = settings_of('set_names', [qw(label_names output_names)], @given);
    my ($labels, $outputs) = map { list_of($names{$_}, $_) } qw(label_names output_names);
    cohort_metric_set_names($self->{handle}, $labels, scalar @$labels, $outputs, scalar @$outputs);
    return;
}

sub update {
    my ($self, $labels, $preds) = @_;
    my ($l, $p) = map { handles_of(AI::Cohort::Executor::Group::_arrays_of_batch($_) || [], 'metric') } $labels, $preds;
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

sub _figures {
    my ($self, $global) = @_;
    my @figures = map {
        cohort_metric_value($self->{handle}, $_, $global, \my $name, \my $value);
        [$name, $value];
    } 0 .. $self->num_values - 1;
    return @{$figures[0]} if @figures == 1 && !$self->{children};
    return ([map { $_->[0] } @figures], [map { $_->[1] } @figures]);
}

# (name, value), or of several values ([names], [values]).
sub get { $_[0]->_figures(0) }
sub get_global { $_[0]->_figures(1) }

sub get_name_value {
    my ($self) = @_;
    my ($names, $values) = $self->get;
    return [[$names, $values]] unless ref $names;
    return [map { [$names->[$_], $values->[$_]] } 0 .. $#$names];
}

sub _counter {
    my ($self, $which, $global) = @_;
    cohort_metric_counters($self->{handle}, 0, $global, \my $sum, \my $num);
    return $which eq 'sum' ? $sum : $num;
}

sub name { my ($names) = $_[0]->get; $names }
sub value { my (undef, $values) = $_[0]->get; $values }
sub sum_metric { $_[0]->_counter('sum', 0) }
sub num_inst { $_[0]->_counter('num', 0) }

1;

__END__

=encoding UTF-8

=head1 NAME

AI::Cohort::Metric - figures accumulated from labels and predictions

=head1 SYNOPSIS

    use AI::Cohort qw(mx);
    my $metric = mx->metric->create(['accuracy', 'cross-entropy', sub {
        my ($label, $prediction) = @_;    # PDLs
        return $prediction->slice('(0),:')->max;
    }]);
    $metric->update([mx->nd->array([0, 1])], [mx->nd->array([[0.9, 0.1], [0.4, 0.6]])]);
    printf "%s: %.2f\n", @$_ for @{$metric->get_name_value};

=head1 METHODS

=head2 create($kind, %settings), new($kind, %settings)

Class methods. From a name: C<accuracy> (C<acc>; axis), C<top_k_accuracy> (top_k), C<f1> and C<mcc> (average), C<pcc>,
C<pearsonr>, C<perplexity> (ignore_label, axis), C<mae>, C<mse>, C<rmse>, C<cross-entropy> (C<ce>; eps), C<nll-loss> (eps),
C<loss>, C<confidence> (num_classes, confidence_thresholds); all take C<name>, and C<label_names> and C<output_names> for those
that C<update_dict> selects. From a list: a composite metric. From a function: C<custom>.

=head2 Accuracy, TopKAccuracy, F1, MAE, MSE, RMSE, CrossEntropy, Perplexity

Class methods: the same by name, C<< mx->metric->TopKAccuracy(top_k => 3) >>.

=head2 custom($function, name => 'custom', arrays => 0, allow_extra_outputs => 0)

Class method: the function is called for each pair of label and prediction, with PDLs, or with L<AI::Cohort::NDArray>s if
C<arrays>, and returns a value, or C<[sum, count]>. If it dies, the update dies with the same error and adds nothing.

=head2 CustomMetric($function, %settings), CustomMetric(eval_function => $function, %settings)

The same under its name in AI::MXNet.

=head2 composite(@metrics)

Class method: a metric of metrics.

=head2 add($metric)

Appends a metric, or a value from which C<create> makes one, to a composite one.

=head2 children, get_metric($index)

The metrics of a composite one, one of them.

=head2 update($labels, $predictions)

Adds labels and predictions, pair by pair; lists of arrays.

=head2 update_dict(\%labels, \%predictions)

The same by name.

=head2 set_names(label_names => [...], output_names => [...])

Selects those that C<update_dict> uses.

=head2 get, get_global

Name and value since the last reset, or since the last global one; for several values a list of names and a list of values. The
value is NaN if nothing was counted.

=head2 get_name_value

A list of C<[name, value]>.

=head2 name, value

The two halves of C<get>.

=head2 num_values

The number of values.

=head2 sum_metric, num_inst

The sum and the count whose quotient is the value.

=head2 reset, reset_local

Resets everything; resets the local values but keeps the global ones.

=cut
