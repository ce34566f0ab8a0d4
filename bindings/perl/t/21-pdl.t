# SPDX-License-Identifier: Apache-2.0
# Arrays and PDLs: copied once, or sharing memory.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";
use CohortTest;
use PDL;
use Test::More;

test 'a PDL becomes an array of the reversed shape and the same elements' => sub {
    my $pdl = sequence(float, 3, 2);
    my $array = nd($pdl);
    is_deeply([$array->shape, $array->dtype, $array->asarray], [[2, 3], 'float32', [[0, 1, 2], [3, 4, 5]]]);
    $pdl .= 9;
    is($array->asarray->[0][0], 0, 'a copy');
    my %types = (double => 'float64', float => 'float32', byte => 'uint8', long => 'int32', longlong => 'int64', indx => 'int64',
        sbyte => 'int8', short => 'float64');
    for my $type (sort keys %types) {
        my $made = AI::Cohort::NDArray->from_pdl(PDL->new([[1, 2]])->convert(PDL::Type->new($type)));
        is_deeply([$made->dtype, $made->asarray], [$types{$type}, [[1, 2]]], $type);
        is(nd(PDL->new([[1, 2]])->convert(PDL::Type->new($type)))->dtype, 'float32', 'but array() makes float32 of it');
    }
    is(nd($pdl, dtype => 'float16')->dtype, 'float16');
    is("" . nd($pdl, dtype => 'int32', ctx => mx->cpu(1))->context, 'cpu(1)');
    is_deeply(nd(sequence(4, 3)->slice('1:2,(1)'))->asarray, [5, 6], 'of a slice its own elements');
    is_deeply(nd(sequence(2, 3)->transpose)->asarray, [[0, 2, 4], [1, 3, 5]]);
    is_deeply(nd(pdl(7))->shape, []);
    is_deeply(nd(zeroes(float, 0))->shape, [0]);
};

test 'a PDL of what no array has is refused' => sub {
    my $complex = PDL->new([1, 2]) * PDL->i;
    for my $make (sub { nd($complex) }, sub { AI::Cohort::NDArray->from_pdl($complex) }, sub { nd([0, 0])->set($complex) }) {
        fails { $make->() } 'dtype', qr/a PDL's type cdouble/;
    }
    my $marked = PDL->new([1, 2, 3])->setbadif(PDL->new([0, 0, 1]));
    fails { nd($marked) } 'invalid_argument', qr/bad values/;
    is_deeply(nd($marked->slice('0:1'))->asarray, [1, 2]);
};

test 'an array becomes a PDL of the reversed shape' => sub {
    for my $dtype (qw(float64 float32 int8 uint8 int32 int64 bool float16 bfloat16)) {
        my $pdl = nd([[1, 0, 1], [1, 1, 0]], dtype => $dtype)->aspdl;
        is_deeply([[$pdl->dims], $pdl->unpdl], [[3, 2], [[1, 0, 1], [1, 1, 0]]], $dtype);
    }
    is(nd(5)->aspdl->sclr, 5);
    is(nd([1, 2])->aspdl->type, 'float');
    my $large = mx->nd->full([100, 10], 3)->aspdl;
    is($large->sum, 3000);
    is(mx->nd->empty([0, 3])->aspdl->nelem, 0);
};

test 'an array is read into a PDL that is there already' => sub {
    my $pdl = zeroes(float, 3, 2);
    nd([[1, 2, 3], [4, 5, 6]])->read_into($pdl);
    is_deeply($pdl->unpdl, [[1, 2, 3], [4, 5, 6]]);
    fails { nd([[1, 2]])->read_into($pdl) } 'shape', qr/\(1, 2\).*\(2, 3\)/;
    fails { nd([[1, 2]], dtype => 'int32')->read_into(zeroes(float, 2, 1)) } 'dtype', qr/float/;
};

test 'wrapped memory is shared, and stays as long as the array' => sub {
    my $pdl = sequence(float, 10, 4);
    my $array = mx->nd->wrap($pdl);
    is_deeply($array->shape, [4, 10]);
    $array->slice(0)->set(7);
    mx->waitall;
    is($pdl->at(9, 0), 7, 'what the library writes, PDL sees');
    $pdl->slice(':,1') .= 8;
    is($array->asarray->[1][5], 8, 'and the other way');
    my $view = $array->slice([2, 3]);
    undef $pdl;
    undef $array;
    is($view->asarray->[1][9], 39, 'a view keeps the memory');
};

test 'the owner is let go when the library is done with it' => sub {
    our $gone = 0;
    { package Owner; our @ISA = ('PDL'); sub new { my ($class, $pdl) = @_; bless {PDL => $pdl}, $class } sub DESTROY { $main::gone = 1 } }
    my $array = mx->nd->wrap(Owner->new(PDL->sequence(PDL::float(), 100)));
    is($gone, 0);
    is($array->asarray->[99], 99);
    undef $array;
    is($gone, 1);
};

test 'an owner may have arrays of its own' => sub {
    my $inner = nd([1, 2]);
    my $owner = PDL->sequence(PDL::float(), 100);
    $owner->hdr->{array} = $inner;
    my $array = mx->nd->wrap($owner);
    my $sum = $array->sum;
    undef $owner;
    undef $inner;
    is(mx->live_handles, 3);
    undef $array;
    is($sum->asscalar, 4950);
    mx->waitall;
    is(mx->live_handles, 1, 'all went with it');
};

test 'a string of packed numbers can be wrapped, too' => sub {
    my $bytes = pack 'f*', 1 .. 6;
    my $copy = $bytes;
    my $array = mx->nd->wrap(\$bytes, shape => [2, 3]);
    $array->set(0);
    mx->waitall;
    is_deeply([unpack 'f*', $bytes], [(0) x 6]);
    is_deeply([unpack 'f*', $copy], [1 .. 6], 'a copy of the string is another');
    fails { mx->nd->wrap(\$bytes, shape => [7]) } 'shape', qr/28 bytes, found 24/;
    fails { mx->nd->wrap(\my $none, shape => [1]) } 'invalid_argument', qr/wrap/;
    fails { mx->nd->wrap(\"\x{263a}", shape => [1]) } 'invalid_argument', qr/characters/;
    fails { AI::Cohort::NDArray->from_bytes("\x{263a}", [1]) } 'invalid_argument', qr/characters/;
    near(AI::Cohort::NDArray->from_bytes(pack('f*', 1, 2), [2]), [1, 2]);
    fails { AI::Cohort::NDArray->from_bytes(pack('f*', 1, 2), [3]) } 'shape', qr/./;
    fails { mx->nd->wrap([1]) } 'invalid_argument', qr/wrap/;
    fails { mx->nd->wrap(pdl(1, 2)) } 'invalid_argument', qr/128 bytes or more, found 16/;
    fails { mx->nd->wrap(zeroes(short, 100)) } 'invalid_argument', qr/short/;
};

test 'a batch of wrapped memory goes to the devices without a copy between' => sub {
    my $data = ones(float, 2, 40);
    my $group = AI::Cohort::Executor::Group->new(symbol => regression(), contexts => [mx->cpu(0), mx->cpu(1)],
        data_shapes => [[data => [40, 2]]], param_names => ['fc_weight'], for_training => 0);
    $group->set_params({fc_weight => nd([[2, 3]])});
    $group->forward(batch([mx->nd->wrap($data)]));
    my $out = zeroes(float, 1, 40);
    $group->get_outputs->[0]->read_into($out);
    is($out->sum, 200);
};

finish();
