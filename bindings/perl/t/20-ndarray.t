# SPDX-License-Identifier: Apache-2.0
# Arrays: making, reading, views, copies, files, arithmetic, operators.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";
use CohortTest;
use File::Temp qw(tempdir);
use Test::More;

test 'arrays are made of shapes, numbers and nested lists' => sub {    # NDA-01, NDA-02
    is_deeply(mx->nd->zeros([2, 3])->asarray, [[0, 0, 0], [0, 0, 0]]);
    is_deeply(mx->nd->ones([2], dtype => 'int32', ctx => mx->cpu(1))->aslist, [1, 1]);
    is_deeply(mx->nd->full([2], 7)->aslist, [7, 7]);
    is_deeply(mx->nd->empty([4, 0])->shape, [4, 0]);
    my $array = nd([[1, 2], [3, 4], [5, 6]], dtype => 'float64');
    is_deeply([$array->shape, $array->size, $array->ndim, $array->len, $array->dtype], [[3, 2], 6, 2, 3, 'float64']);
    is("$array", '<AI::Cohort::NDArray 3x2 @cpu(0)>');
    is(nd(5)->asscalar, 5);
    is_deeply(nd(5)->shape, []);
    is(nd(5)->asarray, 5);
    for my $dtype (qw(float16 bfloat16 float32 float64 int8 uint8 int32 int64 bool)) {
        my $made = nd([0, 1, 1], dtype => $dtype);
        is_deeply([$made->dtype, $made->aslist], [$dtype, [0, 1, 1]]);
    }
    fails { nd([[1, 2], [3]]) } 'invalid_argument', qr/different lengths/;
    fails { nd([1, undef]) } 'invalid_argument', qr/undef/;
    fails { nd({}) } 'invalid_argument', qr/array/;
    fails { mx->nd->zeros([2], dtype => 'int16') } 'dtype', qr/int16/;
    fails { mx->nd->zeros([-2]) } 'shape', qr/-2/;
    fails { mx->nd->zeros(['two']) } 'invalid_argument', qr/two/;
    fails { nd([1, 2])->asscalar } 'shape', qr/found 2/;
};

test 'views share memory, ranges include their end' => sub {    # NDA-03 to NDA-06
    my $array = nd([[1, 2], [3, 4], [5, 6]]);
    $array->slice([1, 2])->set(0);
    is_deeply($array->asarray, [[1, 2], [0, 0], [0, 0]]);
    $array->slice(-1)->set([[8, 9]]);
    is_deeply($array->at(2)->asarray, [8, 9]);
    is_deeply($array->at(-1)->shape, [2]);
    $array->reshape([-1])->slice([0, 0])->set(7);
    is($array->asarray->[0][0], 7);
    is_deeply($array->reshape([0, 1, 2])->shape, [3, 1, 2]);
    $array->slice([0, 0]) .= [[5, 6]];
    $array->at(1) .= 4;
    $array->reshape([6])->slice(5) .= 3;
    is_deeply($array->asarray, [[5, 6], [4, 4], [8, 3]], 'and can be assigned to');
    $array->set([[7, 2], [0, 0], [8, 9]]);
    is_deeply($array->slice_axis(axis => 1, begin => 1, end => 2)->asarray, [[2], [0], [9]]);
    is_deeply(AI::Cohort::NDArray->slice_axis($array, {axis => 0, begin => 1, end => 3})->asarray, [[0, 0], [8, 9]]);
    is_deeply($array->slice(begin => [0, 1], end => [2, 2])->asarray, [[2], [0]], 'as the operator');
    fails { $array->slice([0, 3]) } 'invalid_argument', qr/./;
    fails { $array->reshape([4]) } 'shape', qr/./;
    fails { $array->at(3) } 'invalid_argument', qr/./;
};

test 'copies convert, and cross contexts' => sub {    # NDA-07, NDA-08
    my $array = nd([2.5, -1.5]);
    is_deeply($array->astype('int32')->aslist, [2, -1]);
    my $far = $array->copyto(mx->cpu(2));
    is("" . $far->context, 'cpu(2)');
    ok($array->as_in_context(mx->cpu(0)) eq $array, 'there already');
    ok($far->as_in_context('cpu(0)') ne $far);
    my $target = mx->nd->zeros([2], dtype => 'float64');
    ok($array->copyto($target) eq $target);
    is_deeply($target->aslist, [2.5, -1.5]);
    my $copy = $array->copy;
    $array .= 3;
    is_deeply([$array->aslist, $copy->aslist], [[3, 3], [2.5, -1.5]]);
    $array .= [1, 2];
    is_deeply($array->aslist, [1, 2]);
    fails { $array->copyto(nd([1])) } 'shape', qr/./;
    fails { $array->copyto('cpu') } 'invalid_argument', qr/copyto/;
};

test 'arithmetic is by element, with numbers on either side' => sub {
    my ($a, $b) = (nd([[1, 2], [3, 4]]), nd([10, 20]));
    near($a + $b, [11, 22, 13, 24], 'the shorter is repeated');
    near($a - 1, [0, 1, 2, 3]);
    near(1 - $a, [0, -1, -2, -3]);
    near($a * $a, [1, 4, 9, 16]);
    near(12 / $a, [12, 6, 4, 3]);
    near($a / 2, [0.5, 1, 1.5, 2]);
    near(2**$a, [2, 4, 8, 16]);
    near($a**2, [1, 4, 9, 16]);
    near($a % 2, [1, 0, 1, 0]);
    near(-$a, [-1, -2, -3, -4]);
    near($a == 3, [0, 0, 1, 0]);
    near($a != 3, [1, 1, 0, 1]);
    near($a >= $a, [1, 1, 1, 1]);
    near(2 < $a, [0, 0, 1, 1]);
    near(2 >= $a, [1, 1, 0, 0]);
    my $power = $a;
    $power **= 2;
    near($a, [1, 2, 3, 4], 'of which **= makes a new one');
    fails { $a + 'one' } 'invalid_argument', qr/one/;
    fails { $a + mx->sym->Variable('x') } 'invalid_argument', qr/kind/;
    ok($a, 'true');
};

test '+= and the like write where other references and views see it' => sub {
    my $a = nd([[1, 2], [3, 4]]);
    my ($same, $row) = ($a, $a->at(1));
    for ([sub { $_[0] += 1 }, 4, 5], [sub { $_[0] -= 2 }, 2, 3], [sub { $_[0] *= 6 }, 12, 18], [sub { $_[0] /= 2 }, 6, 9],
        [sub { $_[0] %= 4 }, 2, 1]) {
        my ($change, @expected) = @$_;
        $change->($a);
        near($same->at(1), \@expected);
        near($row, \@expected);
    }
    $row += nd([10, 20]);
    near($a->at(1), [12, 21], 'a view changes the whole');
    $a *= nd([[1], [0]]);
    near($row, [0, 0], 'of which the operand broadcasts');
    is("$a", "$same");
    fails { $row += 'one' } 'invalid_argument', qr/one/;
    fails { $row += nd([1, 2, 3]) } 'shape', qr/3/;
    my $symbol = mx->sym->Variable('x');
    $symbol += 1;
    is_deeply($symbol->list_arguments, ['x'], 'of a symbol it is a new one');
};

test 'operators are methods and functions, made from the registry' => sub {
    my $array = nd([[1, -2], [3, -4]]);
    near($array->sum, [-2]);
    near($array->sum(axis => 1), [-1, -1]);
    near(mx->nd->sum($array, {axis => [0]}), [4, -6]);
    near($array->abs->sqrt, [1, sqrt 2, sqrt 3, 2]);
    is_deeply(mx->nd->concat($array, $array, dim => 1)->shape, [2, 4]);
    is_deeply(mx->nd->concat([$array, $array], dim => 0)->shape, [4, 2]);
    is_deeply(AI::Cohort::NDArray->concatenate([$array, $array], axis => 1)->shape, [2, 4]);
    near(mx->nd->FullyConnected(data => $array, weight => nd([[1, 1]]), num_hidden => 1, no_bias => 1), [-1, -1]);
    my $parts = $array->split(num_outputs => 2, axis => 1);
    is_deeply([map { $_->aslist } @$parts], [[1, 3], [-2, -4]]);
    my $out = mx->nd->zeros([2, 2]);
    my $same = $array->square(out => $out);
    ok($same eq $out);
    near($out, [1, 4, 9, 16]);
    my $weight = nd([1, 2]);
    mx->nd->sgd_update($weight, nd([10, 10]), lr => 0.1, out => $weight);
    near($weight, [0, 1]);
    is_deeply([mx->nd->_arange(start => 1, stop => 4, ctx => mx->cpu(1))->aslist], [[1, 2, 3]]);
    my @noise = map { nd([(1) x 100])->Dropout(p => 0.5, is_train => 1, seed => $_, mode => 'training') } 5, 5, 6;
    @noise = map { ref eq 'ARRAY' ? $_->[0] : $_ } @noise;
    is_deeply($noise[0]->aslist, $noise[1]->aslist, 'the same seed');
    isnt("@{$noise[0]->aslist}", "@{$noise[2]->aslist}", 'another seed');
    fails { $array->sum(axes => 1) } 'name', qr/axes/;
    fails { $array->sum('axis') } 'invalid_argument', qr/without a name/;
    fails { mx->nd->FullyConnected(data => $array, waight => $array, num_hidden => 1) } 'name', qr/waight/;
    my $info = AI::Cohort::Operator::info('Activation');
    is($info->{name}, 'Activation');
    is_deeply([map { $_->{name} } @{$info->{attrs}}], ['act_type']);
    cmp_ok(scalar(AI::Cohort::Operator::names()), '>', 300);
};

test 'ranges of several axes are copies that can be assigned to' => sub {
    my $array = mx->nd->arange(24)->reshape([2, 3, 4]);
    is_deeply($array->slice(1, [0, 1], 'X')->asarray, [[[12 .. 15], [16 .. 19]]]);
    my $part = $array->copy->slice(1, 0, [0, 1]);
    $part += 10;
    is_deeply($part->{parent}->slice(1, 0, [0, 3])->aslist, [22, 23, 14, 15], 'what is added to a part is added there');
    is_deeply($array->slice(-1, -1, [1, -1])->asarray, [[[21, 22, 23]]]);
    is($array->slice(1, 2, 3)->asscalar, 23);
    $array->slice(0, [0, 1], 'X') .= 0;
    $array->slice('X', 2, 0) .= [[[7]], [[8]]];
    is_deeply($array->asarray, [[[(0) x 4], [(0) x 4], [7, 9 .. 11]], [[12 .. 15], [16 .. 19], [8, 21 .. 23]]]);
    fails { $array->slice(0, 3, 0) } 'invalid_argument', qr/axis 1/;
    fails { $array->slice(0, [1, 0], 0) } 'invalid_argument', qr/no range/;
    fails { $array->slice(0, 0, 'Y') } 'invalid_argument', qr/Y/;
};

test 'an array is a list of its rows' => sub {
    my $array = nd([[1, 2], [3, 4]]);
    fails { my @rows = @{nd(3)} } 'shape', qr/without axes/;
    my ($first, $second) = @$array;
    is_deeply([$first->aslist, $second->aslist], [[1, 2], [3, 4]]);
    $_ += 1 for @$array;
    is_deeply($array->asarray, [[2, 3], [4, 5]]);
};

test 'shapes are changed in all the ways of the operator' => sub {
    my $array = mx->nd->arange(stop => 30)->reshape([2, 3, 5]);
    my %shapes = ('-2' => [2, 3, 5], '-3 -1' => [6, 5], '0 -1' => [2, 15], '-1 0' => [10, 3], '-4 1 -1 -2' => [1, 2, 3, 5]);
    is_deeply($array->reshape([split ' ', $_])->shape, $shapes{$_}, $_) for sort keys %shapes;
    is_deeply($array->reshape([-1, 0], reverse => 1)->shape, [6, 5]);
    is_deeply($array->moveaxis(0, 2)->shape, [3, 5, 2]);
    is_deeply($array->moveaxis(-1, 0)->at(4)->asarray, [[4, 9, 14], [19, 24, 29]]);
    fails { $array->moveaxis(3, 0) } 'invalid_argument', qr/axis 3 of 3/;
    is_deeply(mx->nd->arange(2, 8, step => 2, dtype => 'int32')->aslist, [2, 4, 6]);
    my $out = mx->nd->zeros([2]);
    ok(mx->nd->ones([2], out => $out) eq $out);
    near($out, [1, 1]);
    near(mx->nd->full([2], 3, out => $out), [3, 3]);
    near(nd([1, 5])->maximum(nd([4, 2])), [4, 5]);
    near(nd([1, 5])->minimum(3), [1, 3]);
    near(nd([3, 5])->hypot(nd([4, 12])), [5, 13]);
};

test 'a context can be the default for a while' => sub {
    {
        local $mx::Context = mx->cpu(3);
        is("" . mx->nd->zeros([1])->context, 'cpu(3)');
        is("" . mlp()->simple_bind(data => [2, 2])->context, 'cpu(3)');
        is("" . mx->nd->zeros([1], ctx => 'cpu(1)')->context, 'cpu(1)');
    }
    is("" . mx->nd->zeros([1])->context, 'cpu(0)');
};

test 'arrays and symbols are stored and cloned, others refuse' => sub {
    require Storable;
    my $bytes = mx->nd->save_tobuffer({a => nd([1, 2]), b => nd([[3]], dtype => 'int64')});
    is_deeply({map { $_ => mx->nd->load_frombuffer($bytes)->{$_}->asarray } qw(a b)}, {a => [1, 2], b => [[3]]});
    my $clone = Storable::dclone({array => nd([1, 2], dtype => 'uint8'), net => mlp()});
    is_deeply([$clone->{array}->dtype, $clone->{array}->aslist], ['uint8', [1, 2]]);
    is_deeply($clone->{net}->list_arguments, mlp()->list_arguments);
    fails { mx->metric->create('acc')->STORABLE_freeze(1) } 'invalid_argument', qr/Metric/;
    fails { mx->nd->load_frombuffer('nonsense') } 'format', qr/./;
};

test 'files hold lists and maps of arrays' => sub {    # PAR-01 to PAR-07
    my $folder = tempdir(CLEANUP => 1);
    mx->nd->save("$folder/map.params", {'arg:w' => nd([[1, 2]]), "\x{fc}ber" => nd([3])});
    my $map = mx->nd->load("$folder/map.params");
    is_deeply([sort keys %$map], ['arg:w', "\x{fc}ber"]);
    is_deeply($map->{'arg:w'}->asarray, [[1, 2]]);
    mx->nd->save("$folder/list.params", [nd([1]), nd([2, 3], dtype => 'uint8')]);
    my $list = mx->nd->load("$folder/list.params", ctx => 'cpu(1)');
    is_deeply([map { $_->dtype } @$list], [qw(float32 uint8)]);
    is("" . $list->[0]->context, 'cpu(1)');
    fails { mx->nd->load("$folder/none.params") } 'io', qr/none\.params/;
    open my $file, '>', "$folder/bad.params" or die $!;
    print $file 'not arrays';
    close $file;
    fails { mx->nd->load("$folder/bad.params") } 'format', qr/bad\.params|./;
};

test 'random numbers depend on their seed alone' => sub {
    my ($one, $other) = map { mx->nd->zeros([1000])->uniform(-1, 1, $_) } 1, 1;
    is_deeply($one->aslist, $other->aslist);
    is_deeply([grep { $_ < -1 || $_ >= 1 } @{$one->aslist}], []);
    cmp_ok(abs mx->nd->zeros([10000])->normal(5, 2, 3)->mean->asscalar - 5, '<', 0.1);
};

test 'random numbers are others each time, and the same behind the same seed' => sub {
    my $draw = sub { map { @{$_->aslist} } mx->random->uniform(-1, 1, shape => [4]), mx->nd->ones([8])->Dropout(p => 0.5, is_train => 1) };
    mx->random->seed(3);
    my (@first, @then) = $draw->();
    @then = $draw->();
    isnt("@first", "@then");
    mx->random->seed(3);
    is_deeply([$draw->(), $draw->()], [@first, @then]);
    my @own = map { mx->nd->normal(loc => 5, scale => 0.1, shape => [3], seed => 7)->aslist } 1, 2;
    is_deeply(@own, 'a seed of the call is its own');
    is_deeply(mx->random->normal(5, 0.1, {shape => [2]})->shape, [2]);
    fails { mx->random->seed($_) } 'invalid_argument', qr/seed: expected a whole number/ for -1, 'x', undef, 2**31;
};

test 'one array goes to a file of NumPy\'s and back' => sub {
    my $path = tempdir(CLEANUP => 1) . '/x.npy';
    nd([[1, 2], [3, 4]], dtype => 'int32')->save_npy($path);
    my $found = mx->nd->load($path);
    is_deeply($found->[0]->asarray, [[1, 2], [3, 4]]);
    is($found->[0]->dtype, 'int32');
};

test 'the registry says what an attribute takes, where a gradient flows, and what narrow types do' => sub {
    my $info = AI::Cohort::Operator::info('Dropout');
    my ($p) = grep { $_->{name} eq 'p' } @{$info->{attrs}};
    is_deeply([@$p{qw(low high)}], [0, 1]);
    is($info->{precision}, 'follows');
    $info = AI::Cohort::Operator::info('Embedding');
    is_deeply([map { $_->{has_gradient} } @{$info->{inputs}}], [0, 1]);
    is(AI::Cohort::Operator::info('FullyConnected')->{precision}, 'narrow');
};

finish();
