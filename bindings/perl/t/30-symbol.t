# SPDX-License-Identifier: Apache-2.0
# Symbols: composing, names, attributes, inference, JSON.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";
use CohortTest;
use File::Temp qw(tempdir);
use JSON::PP qw(decode_json);
use Test::More;

my $sym = mx->sym;

sub net {
    my $data = $sym->Variable('data');
    my $bn = $sym->BatchNorm($sym->FullyConnected($data, num_hidden => 3, name => 'fc'), name => 'bn');
    return $sym->SoftmaxOutput($bn, name => 'softmax');
}

test 'operators make symbols and missing inputs become variables' => sub {    # SYM-01, SYM-02, SYM-05
    my $net = net();
    is_deeply($net->list_arguments, [qw(data fc_weight fc_bias bn_gamma bn_beta softmax_label)]);
    is_deeply($net->list_auxiliary_states, [qw(bn_moving_mean bn_moving_var)]);
    is_deeply($net->list_outputs, ['softmax_output']);
    is_deeply($net->list_inputs, [qw(data fc_weight fc_bias bn_gamma bn_beta bn_moving_mean bn_moving_var softmax_label)]);
    is($net->name, 'softmax');
    is("$net", '<AI::Cohort::Symbol softmax>');
    my ($x, $w) = map { $sym->var($_) } qw(x w);
    my $named = $sym->FullyConnected(weight => $w, data => $x, num_hidden => 2, no_bias => 1, name => 'f');
    is_deeply($named->list_arguments, [qw(x w)]);
    is_deeply($x->FullyConnected(weight => $w, num_hidden => 2, name => 'g')->list_arguments, [qw(x w g_bias)]);
    like($sym->Activation($x, act_type => 'relu')->name, qr/^activation\d+$/);
    is_deeply($sym->Concat([$x, $w], dim => 1, name => 'c')->list_arguments, [qw(x w)]);
    fails { $sym->FullyConnected($x, name => 'f') } 'name', qr/num_hidden/;
    fails { $sym->FullyConnected($x, num_hiden => 3) } 'name', qr/num_hiden/;
    fails { $sym->Activation($x, act_type => 'reluu') } 'invalid_argument', qr/reluu/;
    fails { $sym->Activation(nowhere => $x, act_type => 'relu') } 'name', qr/nowhere/;
    fails { $sym->Activation($x, data => $x, act_type => 'relu') } 'name', qr/twice/;
    eval { $sym->NoSuchOperator($x) };
    like($@, qr/NoSuchOperator/);
};

test 'arithmetic makes symbols' => sub {
    my ($a, $b) = map { $sym->var($_) } qw(a b);
    my $made = (2 - $a * $b) / ($a + 1) ** 2;
    my $exec = $made->bind(args => {a => nd([1, 3]), b => nd([4, 0])});
    near($exec->forward(0)->[0], [-2 / 4, 2 / 16]);
    my $compared = mx->sym->Group($a > $b, 2 >= $a, $a == $b, $a % 2, -$a);
    my @outputs = map { $_->aslist } @{$compared->bind(args => {a => nd([1, 3]), b => nd([1, 0])})->forward};
    is_deeply(\@outputs, [[0, 1], [1, 0], [1, 0], [1, 1], [-1, -3]]);
    fails { $a + nd([1]) } 'invalid_argument', qr/./;
};

test 'a scope gives attributes to all symbols that are made in it' => sub {
    my ($inside, $outside);
    {
        local $mx::AttrScope = mx->AttrScope(ctx_group => 'one');
        my $data = $sym->Variable('data');
        {
            local $mx::AttrScope = mx->AttrScope(__mood__ => 'good');
            $inside = $data * 2;
        }
        $outside = $inside + $sym->Variable('other', ctx_group => 'two');
    }
    is_deeply([map { $inside->attr($_) } qw(ctx_group __mood__)], ['one', 'good']);
    is_deeply([map { $outside->attr($_) } qw(ctx_group __mood__)], ['one', undef]);
    is_deeply([map { $outside->attr_dict->{$_}{__ctx_group__} } qw(data other)], [qw(one two)]);
    is($sym->Variable('after')->attr('ctx_group'), undef);
};

test 'symbols are evaluated, and compared with numbers' => sub {
    my ($a, $b) = map { $sym->var($_) } qw(a b);
    my %args = (args => {a => nd([1, 5]), b => nd([4, 2])});
    near($a->maximum($b)->eval(%args)->[0], [4, 5]);
    near($a->minimum(2)->eval(args => [nd([1, 5])])->[0], [1, 2]);
    near($a->hypot($b)->eval(%args)->[0], [sqrt 17, sqrt 29]);
    is_deeply([($a + $b * 2)->infer_shape_partial], [[[], []], [[]], []], 'unknown shapes are empty');
};

test 'variables carry attributes' => sub {    # SYM-06, SYM-07, SYM-09
    my $var = $sym->Variable('x', shape => [4, 5], dtype => 'float16', lr_mult => 2, init => mx->init->Xavier(magnitude => 2),
        attr => {__mood__ => 'good'});
    is($var->attr('__shape__'), '(4, 5)');
    is($var->attr('__dtype__'), 2);
    is($var->attr('lr_mult'), 2);
    is_deeply(decode_json($var->attr('__init__')), ['xavier', {magnitude => 2}]);
    is($var->attr('nothing'), undef);
    $var->_set_attr(__mood__ => 'better');
    is($var->list_attr->{__mood__}, 'better');
    is_deeply($sym->FullyConnected($var, num_hidden => 2, name => 'fc', attr => {__layout__ => 'NC'})->attr_dict->{fc}{num_hidden}, 2);
    my ($args) = $sym->FullyConnected($var, num_hidden => 2, no_bias => 1, name => 'fc')->infer_shape;
    is_deeply($args, [[4, 5], [2, 5]], '__shape__ takes part');
    fails { $sym->Variable('x', mood => 'bad') } 'name', qr/mood/;
    fails { $sym->Variable('') } 'invalid_argument', qr/./;
};

test 'heads are selected, grouped and looked through' => sub {    # SYM-03, SYM-04
    my $net = net();
    my $internals = $net->get_internals;
    is_deeply([grep {/output$/} @{$internals->list_outputs}], [qw(fc_output bn_output softmax_output)]);
    is($internals->slice('fc_output')->name, 'fc');
    my $both = $sym->Group($net, $internals->slice('bn_output'));
    is($both->name, undef);
    like("$both", qr/group \[softmax_output, bn_output\]/);
    is_deeply([map { $_->name } @$both], [qw(softmax bn)]);
    is($both->slice(1)->name, 'bn');
    is_deeply($net->get_children->list_outputs, [qw(bn_output softmax_label)]);
    is($sym->Variable('x')->get_children, undef);
    fails { $both->slice(2) } 'invalid_argument', qr/2/;
    fails { $both->slice('bn') } 'name', qr/bn/;
};

test 'symbols are composed of others' => sub {    # SYM-13, SYM-14
    my $top = $sym->FullyConnected($sym->Variable('in'), num_hidden => 2, name => 'top');
    my $bottom = $sym->Activation($sym->Variable('x'), act_type => 'relu', name => 'bottom');
    is_deeply($top->(in => $bottom)->list_arguments, [qw(x top_weight top_bias)]);
    is_deeply($top->call($bottom, name => 'renamed')->list_outputs, ['renamed_output']);
    is_deeply($top->list_arguments, [qw(in top_weight top_bias)], 'the original stays');
    fails { $top->(out => $bottom) } 'name', qr/out/;
    fails { $top->(in => 3) } 'invalid_argument', qr/in/;
    is_deeply($top->deepcopy->list_arguments, $top->list_arguments);
};

test 'shapes and types are inferred' => sub {    # SYM-10 to SYM-12
    my $net = net();
    my ($args, $outputs, $aux) = $net->infer_shape(data => [8, 4]);
    is_deeply($args, [[8, 4], [3, 4], [3], [3], [3], [8]]);
    is_deeply([$outputs, $aux], [[[8, 3]], [[3], [3]]]);
    is_deeply([$net->infer_shape({data => [8, 4]})], [$args, $outputs, $aux]);
    is_deeply([$net->infer_shape([8, 4])], [$args, $outputs, $aux], 'in order');
    is_deeply([$net->infer_shape], [undef, undef, undef]);
    my ($part) = $net->infer_shape_partial(data => [0, 5]);
    is_deeply([@$part[0 .. 2]], [[0, 5], [3, 5], [3]]);
    my ($types) = $net->infer_type(data => 'float16');
    is_deeply([@$types[0 .. 3]], [qw(float16 float16 float16 float32)]);
    is_deeply([($net->infer_type('float64'))[1]], [['float64']], 'in order');
    fails { $net->infer_shape(date => [8, 4]) } 'name', qr/date/;
    fails { $net->infer_shape(data => [8, 4], fc_weight => [3, 5]) } 'shape', qr/fc/;
};

test 'JSON goes out and comes back' => sub {    # SYM-16 to SYM-20
    my $net = net();
    my $json = $net->tojson;
    ok(exists decode_json($json)->{nodes});
    for my $again ($sym->load_json($json), $sym->fromjson($json)) {
        is_deeply($again->list_inputs, $net->list_inputs);
        is_deeply($again->attr_dict, $net->attr_dict);
    }
    my $folder = tempdir(CLEANUP => 1);
    $net->save("$folder/net.json");
    is($sym->load("$folder/net.json")->tojson, $json);
    my $named = $sym->Variable("\x{fc}bung\x{263a}");
    is($sym->load_json($named->tojson)->name, "\x{fc}bung\x{263a}", 'names of any letters');
    fails { $sym->load_json('{"nodes": [') } 'format', qr/./;
    fails { $sym->load("$folder/none.json") } 'io', qr/none/;
    fails { $sym->Variable("a\0b") } 'invalid_argument', qr/zero byte/;
};

test 'what is no text is no name' => sub {
    fails { mx->sym->Variable(['x']) } 'invalid_argument', qr/expected text, found 'ARRAY/;
    fails { mx->sym->exp(mx->sym->Variable('x'), name => {}) } 'invalid_argument', qr/expected text, found 'HASH/;
    fails { mx->sym->load([]) } 'invalid_argument', qr/expected text/;
};

finish();
