# SPDX-License-Identifier: Apache-2.0
# Traces.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";
use CohortTest;
use File::Temp qw(tempdir);
use JSON::PP qw(decode_json);
use Test::More;

test 'a step can be seen, and what it took' => sub {
    my $exec = regression()->simple_bind(data => [2, 2]);
    my $trace = AI::Cohort::Trace->new(flop_per_s => 1e9, byte_per_s => 1e9);
    my $outputs = $trace->running(sub {
        ok($trace->is_running);
        $trace->counter(loss => 0.5);
        $trace->span('step 1', sub { $exec->forward(0) }, 'training');
    });
    is(scalar @$outputs, 1, 'what the function gives');
    $exec->forward(0);    # not recorded
    $exec->wait;
    my ($fc) = grep { $_->{name} eq 'fc' } @{$trace->totals};
    is_deeply([@$fc{qw(kind op count)}], ['operator', 'FullyConnected', 1]);
    ok($fc->{flops} > 0 && $fc->{bytes} > 0 && $fc->{total_ns} >= $fc->{most_ns} && $fc->{most_ns} >= $fc->{least_ns} && $fc->{bound_ns} > 0)
        or diag(explain($fc));
    is_deeply([map { $_->{name} } grep { $_->{kind} eq 'user' } @{$trace->totals}], ['step 1']);
    ok((grep { $_->{name} eq '' && $_->{op} eq 'FullyConnected' } @{$trace->totals('operator')}), 'by operator');
    like($trace->table, qr/of bound.*FullyConnected/s);
    my $path = tempdir(CLEANUP => 1) . '/step.json';
    $trace->write($path);
    open my $file, '<', $path or die $!;
    my $json = do { local $/; <$file> };
    is($json, $trace->json);
    my @seen = grep { ($_->{cat} // '') eq 'operator' } @{decode_json($json)->{traceEvents}};
    is_deeply([map { [$_->{name}, $_->{args}{op}] } @seen], [['fc', 'FullyConnected']]);
    like($exec->debug_str, qr/forward FullyConnected 'fc'.* us by \w+, [\d.]+ us$/m, 'the plan has the time of the step');
    $trace->clear;
    is_deeply([$trace->num_events, $trace->num_dropped, $trace->is_running], [0, 0, 0]);
};

test 'a trace ends with what it records, and refuses what cannot be' => sub {
    my $trace = AI::Cohort::Trace->new(max_events => 1);
    fails { $trace->running(sub { mx->nd->zeros([1], ctx => mx->gpu(99)) }) } 'device', qr/gpu/;
    fails { $trace->stop } 'state', qr/not running/;
    fails { $trace->running } 'invalid_argument', qr/expected a function/;
    fails { $trace->table('size') } 'invalid_argument', qr/name or operator/;
    $trace->clear;
    $trace->start;
    fails { $trace->start } 'state', qr/running already/;
    $trace->mark($_) for qw(a b);
    is_deeply([$trace->num_events, $trace->num_dropped], [1, 1]);
    is_deeply([$trace->span('list', sub { (1, 2, 3) })], [1, 2, 3]);
    fails { $trace->write('/nowhere/x.json') } 'io', qr{/nowhere/x\.json};
    fails { AI::Cohort::Trace->new(flop_per_s => -1) } 'invalid_argument', qr/flop_per_s/;
    fails { AI::Cohort::Trace->new(max_events => -1) } 'invalid_argument', qr/max_events/;
    fails { AI::Cohort::Trace->new(size => 1) } 'name', qr/size/;
};

finish();
