# SPDX-License-Identifier: Apache-2.0
package AI::Cohort::Trace;
use strict;
use warnings;
use AI::Cohort::FFI;

our @ISA = ('AI::Cohort::Handle');

my %by = (name => COHORT_TOTALS_BY_NAME, operator => COHORT_TOTALS_BY_OPERATOR);
my @kinds = qw(operator pass copy exchange update wait call user);

sub free_handle { cohort_trace_free($_[1]) }

sub new {
    my ($class, @given) = @_;
    my %given = settings_of('trace', [qw(max_events flop_per_s bfloat16_flop_per_s byte_per_s)], @given);
    invalid("max_events: expected 0 or more, found $given{max_events}", 'max_events') if ($given{max_events} // '') =~ /^-/;
    my $options = struct(cohort_trace_options => %given);
    cohort_trace_create($options->{pointer}, \my $handle);
    return $class->adopt($handle);
}

sub start { cohort_trace_start($_[0]{handle}) }
sub stop { cohort_trace_stop($_[0]{handle}) }
sub clear { cohort_trace_clear($_[0]{handle}) }

# Returns the function's result.
sub running {
    my ($self, $sub) = @_;
    invalid('running: expected a function, found ' . ($sub // 'undef'), 'running') if ref $sub ne 'CODE';
    $self->start;
    return _around($sub, sub { cohort_wait_all() }, sub { $self->stop });
}

# Calls a function in the caller's context, then one if it did not die, and one in any case.
sub _around {
    my ($sub, $lived, $always) = @_;
    my $list = wantarray;
    my @found;
    my $done = eval { @found = $list ? $sub->() : scalar $sub->(); $lived->(); 1 };
    my $reason = $@;
    $always->();
    die $reason unless $done;
    return $list ? @found : $found[0];
}

sub _info {
    my ($self) = @_;
    my $info = struct('cohort_trace_info');
    cohort_trace_get_info($self->{handle}, $info->{pointer});
    my (undef, @found) = unpack 'J J Q l', ${$info->{bytes}};
    return @found;
}

sub num_events { ($_[0]->_info)[0] }
sub num_dropped { ($_[0]->_info)[1] }
sub is_running { ($_[0]->_info)[2] }

sub json {
    my ($self) = @_;
    cohort_trace_json($self->{handle}, \my $json);
    return $json;
}

sub write { cohort_trace_write($_[0]{handle}, $_[1]) }

sub _by {
    my ($by) = @_;
    return $by{$by} // invalid("by: expected name or operator, found '$by'", 'by');
}

sub table {
    my ($self, $by) = @_;
    cohort_trace_table($self->{handle}, _by($by // 'operator'), \my $text);
    return $text;
}

sub totals {
    my ($self, $by) = @_;
    $by = _by($by // 'name');
    cohort_trace_num_totals($self->{handle}, $by, \my $num);
    return [map { $self->_total($by, $_) } 0 .. $num - 1];
}

sub _total {
    my ($self, $by, $index) = @_;
    my $row = struct('cohort_span_total');
    cohort_trace_total($self->{handle}, $by, $index, \my $name, \my $op, $row->{pointer});
    my %total = (name => $name, op => $op);
    (undef, my $kind, @total{qw(count total_ns least_ns most_ns flops bytes bound_ns)}) = unpack 'J l x4 Q q3 d3', ${$row->{bytes}};
    $total{kind} = $kinds[$kind];
    return \%total;
}

sub span {
    my ($self, $name, $sub, $row) = @_;
    invalid('span: expected a name and a function, found ' . ($sub // 'undef'), 'span') if ref $sub ne 'CODE';
    $row //= 'host';
    cohort_trace_begin($self->{handle}, $row, $name);
    return _around($sub, sub {}, sub { cohort_trace_end($self->{handle}, $row) });
}

sub mark { cohort_trace_mark($_[0]{handle}, $_[2] // 'host', $_[1]) }
sub counter { cohort_trace_counter($_[0]{handle}, $_[1], $_[2]) }

1;

__END__

=encoding UTF-8

=head1 NAME

AI::Cohort::Trace - what the process runs, and how long it takes compared with the machine's limits

=head1 SYNOPSIS

    use AI::Cohort qw(mx);
    use File::Temp qw(tempdir);
    my $exec = mx->sym->exp(mx->sym->Variable('x'), name => 'e')->simple_bind(x => [1000]);
    my $trace = AI::Cohort::Trace->new;
    $trace->running(sub { $exec->forward(0) });
    print $trace->table;
    printf "%s: %d ns\n", @$_{qw(name total_ns)} for @{$trace->totals};
    $trace->write(tempdir(CLEANUP => 1) . '/step.json');    # for chrome://tracing or Perfetto

=head1 DESCRIPTION

While a trace runs it records every operator, copy, sum of gradients and update of the process. Several may run at once.
L<AI::Cohort::Executor/debug_str> then shows the times of each step of the network.

=head1 METHODS

=head2 new(max_events => 0, flop_per_s => 0, bfloat16_flop_per_s => 0, byte_per_s => 0)

Class method. The last C<max_events> are kept; totals include all. The rates are those of the threads of one device, and are
measured if they are not given.

=head2 start, stop

Starts or resumes recording; stops it. Queued work is only recorded if it has been waited for.

=head2 running($sub)

Records while a function runs, waits for all work at its end, and returns its result.

=head2 clear

Discards all events and totals.

=head2 num_events, num_dropped, is_running

The number of events kept and of events dropped; whether the trace is running.

=head2 json, write($path)

The events in Chrome's format; writes them to a file, completely or not at all.

=head2 table($by = 'operator')

A table of the times, for a person: a row for each C<operator>, or each C<name> of a node or parameter.

=head2 totals($by = 'name')

The same as numbers, longest first. A list of hashes: C<kind> (C<operator>, C<pass>, C<copy>, C<exchange>, C<update>, C<wait>,
C<call>, C<user>), C<name>, C<op>, C<count>, C<total_ns>, C<least_ns>, C<most_ns>, C<flops>, C<bytes>, and C<bound_ns>, the
least time that the machine needs for these. 0: unknown.

=head2 span($name, $sub, $row = 'host')

Shows a function's run as a span on a row of the program's own; spans of a row nest. Returns the function's result.

=head2 mark($name, $row = 'host'), counter($name, $value)

Marks a point in time; records a value, which a viewer draws as a curve.

=cut
