# SPDX-License-Identifier: Apache-2.0
package AI::Cohort;
use strict;
use warnings;
use AI::Cohort::FFI ();
use AI::Cohort::Context;
use AI::Cohort::DataBatch;
use AI::Cohort::DataDesc;
use AI::Cohort::Error;
use AI::Cohort::Executor;
use AI::Cohort::Executor::Group;
use AI::Cohort::Executor::Manager;
use AI::Cohort::Initializer;
use AI::Cohort::Logging;
use AI::Cohort::Metric;
use AI::Cohort::Model;
use AI::Cohort::Monitor;
use AI::Cohort::NDArray;
use AI::Cohort::Operator;
use AI::Cohort::Optimizer;
use AI::Cohort::Symbol;

our $VERSION = '0.001000';

# `use AI::Cohort qw(mx)` gives the program a word for this class.
sub import {
    my ($class, @words) = @_;
    my $caller = caller;
    no strict 'refs';
    for my $word (@words) {
        AI::Cohort::FFI::invalid("use AI::Cohort: expected a word, found '$word'", $word) unless $word =~ /^[a-zA-Z_]\w*$/;
        *{"${caller}::$word"} = sub () {$class};
    }
}

sub cpu { AI::Cohort::Context->cpu($_[1]) }
sub gpu { AI::Cohort::Context->gpu($_[1]) }

my %classes = (
    context => 'Context', ctx => 'Context', nd => 'NDArray', ndarray => 'NDArray', sym => 'Symbol', symbol => 'Symbol',
    metric => 'Metric', opt => 'Optimizer', optimizer => 'Optimizer', init => 'Initializer', initializer => 'Initializer',
    mon => 'Monitor', monitor => 'Monitor', model => 'Model', logging => 'Logging', executor => 'Executor',
    group => 'Executor::Group', manager => 'Executor::Manager',
);
for my $word (keys %classes) {
    no strict 'refs';
    *$word = sub { "AI::Cohort::$classes{$word}" };
}

sub version { AI::Cohort::FFI::cohort_version() }
sub library { $AI::Cohort::FFI::LIBRARY }
sub live_handles { AI::Cohort::FFI::cohort_live_handles() }
sub waitall { AI::Cohort::FFI::cohort_wait_all() }
sub has_feature { AI::Cohort::FFI::cohort_has_feature($_[1]) }

1;
