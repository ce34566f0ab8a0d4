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
    my ($class, $prefix, $epoch, @given) = @_;
    my %given = settings_of('load_checkpoint', ['map_file'], @given);
    my $load = $given{map_file} ? \&cohort_checkpoint_map : \&cohort_checkpoint_load;
    $load->($prefix, $epoch, \my $symbol, \my $args, \my $aux);
    ($args, $aux) = map { AI::Cohort::Arrays->adopt($_) } $args, $aux;
    return (AI::Cohort::Symbol->adopt($symbol), $args->hash, $aux->hash);
}

1;

__END__

=encoding UTF-8

=head1 NAME

AI::Cohort::Model - checkpoints

=head1 SYNOPSIS

    use AI::Cohort qw(mx);
    use File::Temp qw(tempdir);
    my $prefix = tempdir(CLEANUP => 1) . '/net';
    my $net = mx->sym->FullyConnected(mx->sym->Variable('data'), num_hidden => 2, no_bias => 1, name => 'fc');
    mx->model->save_checkpoint($prefix, 7, $net, {fc_weight => mx->nd->ones([2, 3])}, {});
    # load and predict
    my ($symbol, $arg_params, $aux_params) = mx->model->load_checkpoint($prefix, 7);
    my $exec = $symbol->simple_bind(shapes => {data => [1, 3]}, grad_req => 'null');
    $exec->copy_params_from($arg_params, $aux_params);
    my ($scores) = @{$exec->forward(0, data => [[1, 2, 3]])};
    print "@{$scores->aslist}\n";    # 6 6

=head1 DESCRIPTION

MXNet's two files: F<PREFIX-symbol.json>, and F<PREFIX-0007.params> with the parameters after epoch 7.

=head1 METHODS

=head2 save_checkpoint($prefix, $epoch, $symbol, \%arg_params, \%aux_params)

Class method. Each file is written completely or not at all. C<$symbol> may be C<undef>: then the first is not written.

=head2 load_checkpoint($prefix, $epoch, map_file => 0)

Class method: symbol, parameters and auxiliary states. With C<map_file> large arrays stay in a mapping of the file and are read
when they are used; it must not be changed or truncated in place as long as they exist.

=cut
