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

# What the function gives.
sub running {
    my ($self, $sub) = @_;
    invalid('running: expected a function, found ' . ($sub // 'undef'), 'running') if ref $sub ne 'CODE';
    $self->start;
    return _around($sub, sub { cohort_wait_all() }, sub { $self->stop });
}

# Calls a function, in the context of who asked for it, then one if it lived, and one in any case.
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

AI::Cohort::Trace - what the process does, step by step, and how long it takes beside what the machine can do

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

While a trace runs it records every operator, copy, sum of gradients and update of the process. Several may run at once. The text of
L<AI::Cohort::Executor/debug_str> has the times of each step of the network while one ran.

=head1 METHODS

=head2 new(max_events => 0, flop_per_s => 0, bfloat16_flop_per_s => 0, byte_per_s => 0)

Class method. C<max_events> are kept, older ones make room; totals are of all. The rates are what the threads of one device can
do, and measured where they are not given.

=head2 start, stop

Goes on recording; stops. Work that is queued must have been waited for, or it is not there.

=head2 running($sub)

Records what a function does, waits for all work at its end, and returns what it returned.

=head2 clear

Forgets what there is.

=head2 num_events, num_dropped, is_running

How many events are kept, how many had to make room; whether it runs.

=head2 json, write($path)

The events in Chrome's format; the same to a file, whole or not at all.

=head2 table($by = 'operator')

What took how long, for a person: a row for each C<operator>, or each C<name> of a node or parameter.

=head2 totals($by = 'name')

The same as numbers, what took longest first. A list of hashes: C<kind> (C<operator>, C<pass>, C<copy>, C<exchange>, C<update>,
C<wait>, C<call>, C<user>), C<name>, C<op>, C<count>, C<total_ns>, C<least_ns>, C<most_ns>, C<flops>, C<bytes>, and C<bound_ns>, the
time that the machine would take for these at least. 0: not known.

=head2 span($name, $sub, $row = 'host')

Shows what a function does as a span on a row of the program's own; spans of a row nest. Returns what the function returned.

=head2 mark($name, $row = 'host'), counter($name, $value)

Marks a moment; notes a value, which a viewer draws as a curve.

=cut
