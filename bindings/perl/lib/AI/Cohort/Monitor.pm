# SPDX-License-Identifier: Apache-2.0
package AI::Cohort::Monitor;
use strict;
use warnings;
use AI::Cohort::FFI;
use AI::Cohort::Arrays;
use AI::Cohort::Logging;
use Scalar::Util qw(blessed);

our @ISA = ('AI::Cohort::Handle');

sub free_handle { cohort_monitor_free($_[1]) }

sub new {
    my ($class, @given) = @_;
    unshift @given, 'interval' if @given % 2;
    my %given = settings_of('monitor', [qw(interval stat_func pattern sort monitor_all logger stop_if_not_finite)], @given);
    invalid('monitor: interval is missing', 'interval') unless defined $given{interval};
    my $self = bless {interval => $given{interval}, pattern => $given{pattern} // '.*', logger => $given{logger}}, $class;
    my $pattern = eval {qr/$self->{pattern}/};
    invalid("monitor: pattern '$self->{pattern}' is no regular expression: $@" =~ s/\s+/ /gr, 'pattern') unless defined $pattern;
    my $wanted = sub { AI::Cohort::FFI::decode_text($_[0]) =~ $pattern ? 1 : 0 };
    (my $filter, $self->{filter_id}) = callback('(string,opaque)->sint32', $wanted);
    invalid('monitor: stat_func: expected a function', 'stat_func') if defined $given{stat_func} && ref $given{stat_func} ne 'CODE';
    my $statistic;
    ($statistic, $self->{statistic_id}) = callback('(opaque,opaque,opaque)->sint32', _statistic_of($given{stat_func}))
        if $given{stat_func};
    my $options = struct(
        cohort_monitor_options => filter => $filter,
        filter_user_data => $self->{filter_id},
        all_in_toc => 1,
        sort => $given{sort} ? 1 : 0,
        monitor_all => $given{monitor_all} ? 1 : 0,
        stop_if_not_finite => $given{stop_if_not_finite} ? 1 : 0,
        statistic => $statistic,
        statistic_user_data => $self->{statistic_id},
    );
    cohort_monitor_create($given{interval}, $options->{pointer}, \$self->{handle});
    return $self;
}

sub Monitor { my $class = shift; $class->new(@_) }

# Calls the Perl function on an array; it returns an array, a list of them, or numbers.
sub _statistic_of {
    my ($function) = @_;
    return sub {
        my ($array, $values) = @_;
        my $given = $function->(AI::Cohort::NDArray->share($array));
        for my $value (ref $given eq 'ARRAY' ? @$given : $given) {
            my $is_array = blessed $value && $value->isa('AI::Cohort::NDArray');
            $value = AI::Cohort::NDArray->array(ref $value ? $value : [$value]) unless $is_array;
            cohort_arrays_add($values, undef, $value->{handle});
        }
        return 0;
    };
}

sub interval { $_[0]{interval} }
sub pattern { $_[0]{pattern} }

# Watches an executor, a group or a manager.
sub install {
    my ($self, $watched) = @_;
    my $handle = handle_of($watched, 'install') // invalid('install: expected what to watch, found undef', 'install');
    my $install = $watched->isa('AI::Cohort::Executor::Group') ? \&cohort_monitor_install_on_group
        : $watched->isa('AI::Cohort::Executor::Manager') ? \&cohort_monitor_install_on_manager
        : \&cohort_monitor_install_on_executor;
    $install->($self->{handle}, $handle);
    return;
}

sub tic { cohort_monitor_tic($_[0]{handle}) }

# [step, name, text] of each entry.
sub toc {
    my ($self) = @_;
    cohort_monitor_toc($self->{handle}, \my $num);
    return [map {
        cohort_monitor_entry($self->{handle}, $_, \my $step, \my $name, \my $text);
        [$step, $name, $text];
    } 0 .. $num - 1];
}

# The arrays that the statistic returned for an entry of the latest toc.
sub values {
    my ($self, $index) = @_;
    cohort_monitor_values($self->{handle}, $index, \my $handle);
    return AI::Cohort::Arrays->adopt($handle)->list;
}

sub toc_print {
    my ($self) = @_;
    my $logger = $self->{logger} // AI::Cohort::Logging->get_logger(level => 'info');
    AI::Cohort::Logging::_pass_on($logger, 'info', sprintf 'Batch: %7d %30s %s', @$_) for @{$self->toc};
    return;
}

sub step {
    my ($self) = @_;
    cohort_monitor_step($self->{handle}, \my $step);
    return $step;
}

1;

__END__

=encoding UTF-8

=head1 NAME

AI::Cohort::Monitor - statistics of arrays while a network runs

=head1 SYNOPSIS

    use AI::Cohort qw(mx);
    my $exec = mx->sym->FullyConnected(mx->sym->Variable('data'), num_hidden => 2, name => 'fc')->simple_bind(data => [1, 3]);
    my $monitor = mx->mon->new(interval => 2, pattern => qr/output|weight/, stat_func => sub { $_[0]->abs->max });
    $monitor->install($exec);
    for (1 .. 4) {
        $monitor->tic;
        $exec->forward(1);
        printf "%d %s %s\n", @$_ for @{$monitor->toc};
    }

=head1 METHODS

=head2 new(%options), Monitor($interval, %options)

Options:

=over

=item interval

The first of each so many batches is reported. Required.

=item pattern

A regular expression, searched for anywhere in the names of operator outputs. Default: all.

=item stat_func

A function of an array (L<AI::Cohort::NDArray>) that returns an array, a number, or a list of them. Default: the norm divided by
the root of the size. If it dies, the pass or C<toc> dies with the same error.

=item sort

1: the report is sorted by name. Default 0: in the order of execution.

=item monitor_all

1: the inputs of operators, too. Default 0.

=item stop_if_not_finite

1: a pass dies at the first output or gradient with an infinity or a NaN, whatever the pattern says; the error names it. Default 0.

=item logger

The destination of C<toc_print>. Default: STDERR.

=back

=head2 install($watched)

Watches an executor, a group or a manager. A monitor may watch several; each of these has one monitor at a time.

=head2 tic, toc

Before and after a batch. C<toc> returns a list of C<[step, name, text]>: operator outputs, then all parameters and auxiliary
states; it is empty for batches that are not on the interval.

=head2 toc_print

C<toc>, printed.

=head2 values($index)

The arrays that the statistic returned for an entry of the latest C<toc>.

=head2 step

The number of batches begun.

=head2 interval, pattern

As they were given.

=cut
