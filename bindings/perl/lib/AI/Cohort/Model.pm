# SPDX-License-Identifier: Apache-2.0
package AI::Cohort::Model;
use strict;
use warnings;
use AI::Cohort::FFI;
use AI::Cohort::Arrays;
use AI::Cohort::Symbol;

sub save_checkpoint {
    my ($class, $prefix, $epoch, $symbol, $arg_params, $aux_params) = @_;
    my ($args, $aux) = (AI::Cohort::Arrays->of($arg_params, 'arg_params'), AI::Cohort::Arrays->of($aux_params, 'aux_params'));
    cohort_checkpoint_save($prefix, $epoch, handle_of($symbol, 'symbol'), handle_of($args), handle_of($aux));
    return;
}

# (symbol, {parameters}, {auxiliary states})
sub load_checkpoint {
    my ($class, $prefix, $epoch) = @_;
    cohort_checkpoint_load($prefix, $epoch, \my $symbol, \my $args, \my $aux);
    ($args, $aux) = map { AI::Cohort::Arrays->adopt($_) } $args, $aux;
    return (AI::Cohort::Symbol->adopt($symbol), $args->hash, $aux->hash);
}

1;
