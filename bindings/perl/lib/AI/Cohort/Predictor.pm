# SPDX-License-Identifier: Apache-2.0
package AI::Cohort::Predictor;
use strict;
use warnings;
use AI::Cohort::FFI;
use AI::Cohort::Context;
use AI::Cohort::Executor;
use AI::Cohort::Model;
use AI::Cohort::NDArray;
use Scalar::Util qw(blessed);

my @precision = grep { !/^(?:backward_once|recompute)$/ } @AI::Cohort::Executor::PRECISION;
my @settings = (qw(shapes ctx num_threads), @precision);

sub new {
    my ($class, @given) = @_;
    my %given = settings_of('predictor', [qw(symbol arg_params aux_params), @settings], @given);
    for (qw(symbol shapes)) { invalid("predictor: $_ is missing", $_) unless defined $given{$_} }
    my $symbol = $given{symbol};
    invalid("predictor: symbol: expected a symbol, found $symbol", 'symbol') unless blessed $symbol && $symbol->isa('AI::Cohort::Symbol');
    my $shapes = hash_of($given{shapes}, 'shapes');
    my %is_argument = map { $_ => 1 } @{$symbol->list_arguments};
    for (sort keys %$shapes) {
        next if $is_argument{$_};
        AI::Cohort::Error->throw(
            name => "inputs: the network has no argument '$_'; it has: " . join(', ', @{$symbol->list_arguments}), $_);
    }
    my ($args, $aux) = map { _here($given{$_}, $_, $given{ctx}) } qw(arg_params aux_params);
    delete @$args{grep { !$is_argument{$_} || $shapes->{$_} } keys %$args};
    my $self = bless {shapes => {%$shapes}}, $class;
    my %bound = (args => _with_inputs($symbol, $shapes, $args, $given{ctx}), aux_states => _needed($symbol, $aux));
    $self->{executor} = $symbol->bind(%bound, grad_req => 'null', map { $_ => $given{$_} } grep { exists $given{$_} } qw(ctx num_threads),
        @precision);
    return $self;
}

sub load {
    my ($class, $prefix, $epoch, @given) = @_;
    my %given = settings_of('predictor', [@settings, 'map_file'], @given);
    my ($symbol, $args, $aux) = AI::Cohort::Model->load_checkpoint($prefix, $epoch, map_file => delete $given{map_file});
    return $class->new(symbol => $symbol, arg_params => $args, aux_params => $aux, %given);
}

# Arrays on the context; those that are there already are not copied.
sub _here {
    my ($given, $what, $ctx) = @_;
    my $arrays = hash_of($given, $what);
    my $where = defined $ctx ? AI::Cohort::Context->of($ctx) : AI::Cohort::Context->current_ctx;
    return {map {
        my $array = $arrays->{$_};
        $array = AI::Cohort::NDArray->array($array, ctx => $where) unless blessed $array && $array->isa('AI::Cohort::NDArray');
        $_ => $array->as_in_context($where);
    } keys %$arrays};
}

# All arguments: zeros for inputs, and for labels, which inference does not read.
sub _with_inputs {
    my ($symbol, $shapes, $args, $ctx) = @_;
    my ($found) = $symbol->infer_shape({%$shapes, map { $_ => $args->{$_}->shape } keys %$args});
    my ($dtypes) = $symbol->infer_type({map { $_ => $args->{$_}->dtype } keys %$args});
    my $names = $symbol->list_arguments;
    my %unread = map { $_ => 1 } @{$symbol->list_labels};
    my %all = %$args;
    for my $i (grep { !$all{$names->[$_]} } 0 .. $#$names) {
        my $name = $names->[$i];
        AI::Cohort::Error->throw(name => "parameters: expected all, found none called $name", $name)
            unless $shapes->{$name} || $unread{$name};
        AI::Cohort::Error->throw(shape => "inputs: their shapes do not give that of '$name'", $name) unless $found && $found->[$i];
        $all{$name} = AI::Cohort::NDArray->zeros($found->[$i], ctx => $ctx, dtype => $dtypes && $dtypes->[$i] || 'float32');
    }
    return \%all;
}

sub _needed {
    my ($symbol, $aux) = @_;
    for (@{$symbol->list_auxiliary_states}) {
        AI::Cohort::Error->throw(name => "parameters: expected all, found none called $_", $_) unless $aux->{$_};
    }
    return $aux;
}

# Copies inputs in, after changing shapes if needed.
sub _load {
    my ($self, @given) = @_;
    my %inputs = settings_of('inputs', undef, @given);
    my ($wanted, $found) = map { join ', ', sort keys %$_ } $self->{shapes}, \%inputs;
    AI::Cohort::Error->throw(name => "inputs: expected $wanted, found $found", 'inputs') if $wanted ne $found;
    for (values %inputs) { $_ = AI::Cohort::NDArray->array($_) unless blessed $_ && $_->isa('AI::Cohort::NDArray') }
    my %shapes = map { $_ => [@{$inputs{$_}->shape}] } keys %inputs;
    if (grep { "@{$shapes{$_}}" ne "@{$self->{shapes}{$_}}" } keys %shapes) {
        $self->{executor} = $self->{executor}->reshape(\%shapes, partial_shaping => 1, allow_up_sizing => 1);
        $self->{shapes} = \%shapes;
    }
    return \%inputs;
}

sub predict {
    my ($self, @given) = @_;
    my $inputs = $self->_load(@given);
    return [map { $_->copy } @{$self->{executor}->forward(0, %$inputs)}];
}

sub observe {
    my ($self, $calibration, @given) = @_;
    invalid('observe: expected a calibration, found ' . ($calibration // 'undef'), 'calibration')
        unless blessed $calibration && $calibration->isa('AI::Cohort::Calibration');
    my $inputs = $self->_load(@given);
    $self->{executor}->forward(0, %$inputs);
    $calibration->observe($self->{executor});
    return;
}

1;

__END__

=encoding UTF-8

=head1 NAME

AI::Cohort::Predictor - a network for inference

=head1 SYNOPSIS

    use AI::Cohort qw(mx);
    my $predictor = AI::Cohort::Predictor->new(
        symbol     => mx->sym->FullyConnected(mx->sym->Variable('data'), num_hidden => 1, no_bias => 1, name => 'fc'),
        arg_params => {fc_weight => mx->nd->array([[1, 10]])},
        shapes     => {data => [1, 2]},
    );
    my ($scores) = @{$predictor->predict(data => [[3, 4]])};
    print "@{$scores->aslist}\n";    # 43

=head1 DESCRIPTION

Parameters on the predictor's context are used without a copy, others are copied there. L<AI::Cohort::Calibration> has an
example of inference in int8.

=head1 METHODS

=head2 new(symbol => ..., arg_params => {...}, aux_params => {...}, shapes => {...}, %settings)

Class method. C<shapes> are those of the inputs by name. Settings: C<ctx>, C<num_threads>, and those of precision in
L<AI::Cohort::Executor>: C<compute_dtype>, C<float32_names>, C<narrow_names>, C<tf32>, C<calibration>.

=head2 load($prefix, $epoch, shapes => {...}, %settings)

Class method: from a checkpoint, with the same settings, and C<map_file> as in L<AI::Cohort::Model/load_checkpoint>.

=head2 predict(name => $array, ...)

A list of the outputs for inputs by name: arrays, PDLs or nested array refs. A batch of another length is accepted, too.

=head2 observe($calibration, name => $array, ...)

Lets an L<AI::Cohort::Calibration> observe the network on these inputs. It has to compute in float32.

=cut
