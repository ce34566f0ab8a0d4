# SPDX-License-Identifier: Apache-2.0
# Errors, contexts, the library's log, and the library's version and features.
use strict;
use warnings;
use File::Temp ();
use FindBin;
use lib "$FindBin::Bin/lib";
use CohortTest;
use Test::More;

test 'an error is an object that reads as its message' => sub {    # ERR-01 to ERR-08
    my $line = __LINE__ + 1;
    eval { nd([[1, 2]])->reshape([3]) };
    my $error = $@;
    isa_ok($error, 'AI::Cohort::Error');
    is("$error", $error->message . " at $0 line " . $error->line . ".\n");
    is_deeply([$error->code, $error->class], [3, 'shape']);
    ok($error->is('shape') && $error->is(3) && !$error->is('name'));
    is($error->file, __FILE__);
    is($error->line, $line);
    unlike($error->message, qr/\n/);
    eval { mx->nd->load('nowhere.params') };
    is($@->subject, 'nowhere.params');
    eval { AI::Cohort::Error->throw(state => 'not now', 'clock') };
    is_deeply([$@->class, $@->code, $@->message, $@->subject], ['state', 5, 'not now', 'clock']);
};

test 'contexts are a type and a number' => sub {    # CTX-01 to CTX-03
    my $class = mx->context;
    is(mx->cpu, 'cpu(0)');
    is(mx->gpu(1), 'gpu(1)');
    is($class->new('cpu(7)')->device_id, 7);
    is($class->new(device_type => 'cpu_pinned', device_id => 2), 'cpu_pinned(2)');
    is($class->new($class->new('gpu', 3)), 'gpu(3)');
    is($class->new('cpu'), 'cpu(0)');
    ok(mx->cpu(1) == $class->new('cpu(1)') && mx->cpu(1) != mx->cpu(2) && !(mx->cpu == 'cpu(0)'));
    is_deeply([map { $_->device_type_id } mx->cpu, mx->gpu], [1, 2]);
    cmp_ok($class->num_devices('cpu'), '>=', 1);
    cmp_ok($class->num_devices('gpu'), '>=', 0);
    fails { $class->new('tpu') } 'invalid_argument', qr/tpu/;
    fails { mx->cpu(-1) } 'invalid_argument', qr/-1/;
};

test 'the library says what it is' => sub {
    like(mx->version, qr/^\d+\.\d+\.\d+$/);
    like(mx->library, qr/cohort/);
    is(mx->has_feature('cpu'), 1);
    is(mx->has_feature('telepathy'), 0);
};

test 'the place of the library is checked' => sub {
    local $ENV{COHORT_LIB} = '/nowhere';
    fails { AI::Cohort::FFI::find_library() } 'io', qr{Tried /nowhere: /nowhere: cannot open shared object file};
    local $ENV{COHORT_LIB} = '/';
    fails { AI::Cohort::FFI::find_library() } 'io', qr{/libcohort\.so};
};

test 'a library that is too old is refused' => sub {
    plan skip_all => 'there is no compiler here' if system('cc --version >/dev/null 2>&1') != 0;
    my $folder = File::Temp::tempdir(CLEANUP => 1);
    my @others = grep { !/^cohort_version(?:_number)?$/ } sort keys %AI::Cohort::FFI::Declarations::FUNCTIONS;
    for my $case ([\@others, 'is libcohort 0.0.1'], [[], 'has no cohort_arrays_add']) {
        my ($functions, $reason) = @$case;
        open my $cc, '|-', "cc -shared -fPIC -w -xc - -o $folder/libcohort.so" or die $!;
        print {$cc} 'int cohort_version_number(void) { return 1; } const char *cohort_version(void) { return "0.0.1"; }';
        print {$cc} "void $_(void) {}\n" for @$functions;
        close $cc or die "cc: $?";
        local $ENV{COHORT_LIB} = $folder;
        like(qx{$^X -I$FindBin::Bin/../lib -e 'use AI::Cohort' 2>&1},
            qr{^\Q$folder/libcohort.so $reason; this package needs libcohort \E[\d.]+ or later at -e line 1\.\n});
    }
};

test 'structs of options are laid out as the library has them' => sub {
    no strict 'refs';
    for my $type (grep {/_options$/} sort keys %AI::Cohort::FFI::Declarations::STRUCTS) {
        my $zeros = AI::Cohort::FFI::struct($type);
        my $bytes = "\xff" x length ${$zeros->{bytes}};
        &{"AI::Cohort::FFI::${type}_init"}(FFI::Platypus::Buffer::scalar_to_pointer($bytes), length $bytes);
        is(unpack('H*', $bytes), unpack('H*', ${$zeros->{bytes}}), $type);
    }
    my $options = AI::Cohort::FFI::struct(cohort_group_options => rounding => 2, seed => 7, num_threads => 3, grad_req => \"add\0");
    my @fields = unpack 'J3 l x4 J2 l x4 J2 J', ${$options->{bytes}};
    is_deeply([@fields[0, 3]], [length ${$options->{bytes}}, 2]);
    is(unpack('Z*', FFI::Platypus::Buffer::buffer_to_scalar($fields[-1], 4)), 'add');
    eval { AI::Cohort::FFI::struct(cohort_group_options => roundin => 2) };
    like($@, qr/no field roundin/);
};

test 'a word of the program stands for the class' => sub {
    is(mx, 'AI::Cohort');
    is(mx->sym, 'AI::Cohort::Symbol');
    eval q{package Elsewhere; use AI::Cohort qw(net); main::is(net->nd, 'AI::Cohort::NDArray'); 1} or fail($@);
    fails { AI::Cohort->import('no word') } 'invalid_argument', qr/no word/;
};

test 'classes go by the names of AI::MXNet, too' => sub {
    my $desc = mx->io->DataDesc('data', [3, 8, 7], layout => 'TNC', dtype => 'float16');
    is_deeply([$desc->name, $desc->shape, $desc->layout, $desc->dtype], ['data', [3, 8, 7], 'TNC', 'float16']);
    is_deeply(mx->io->DataBatch(data => [1], label => [2])->label, [2]);
    is(mx->opt->SGD(learning_rate => 0.25)->lr, 0.25);
    is(mx->optimizer->Adam(beta1 => 0.5)->get('beta1'), 0.5);
    is(mx->metric->TopKAccuracy(top_k => 3)->name, 'top_k_accuracy_3');
    is_deeply((mx->metric->create(['mae', 'mse'], output_names => ['a'])->get)[0], ['mae', 'mse']);
    is(mx->Context('gpu', 2), 'gpu(2)');
};

test 'messages of the library go to a logger' => sub {
    my @said;
    mx->logging->set_log(info => sub { push @said, [@_] });
    my $manager = mx->manager->new(symbol => regression(), contexts => [mx->cpu], batch_size => 2, data_shapes => [[data => [2, 2]]],
        param_names => ['fc_weight'], logger => undef);
    mx->logging->set_log('warning', undef);
    is_deeply(\@said, [], 'those of a manager go to its own');
    { package Any::Logger; sub new { bless {said => []}, shift } sub info { push @{$_[0]{said}}, $_[1] } }
    my $logger = Any::Logger->new;
    mx->manager->new(symbol => regression(), contexts => [mx->cpu], batch_size => 2, data_shapes => [[data => [2, 2]]],
        param_names => ['fc_weight'], logger => $logger);
    like("@{$logger->{said}}", qr/cpu\(0\)/);
    my @printed = do {
        open my $saved, '>&', \*STDERR or die $!;
        my $text = '';
        close STDERR;
        open STDERR, '>', \$text or die $!;
        my $quiet = mx->logging->get_logger(level => 'warning');
        $quiet->info('not this');
        $quiet->warning('%d of %s', 3, 'these');
        mx->logging->info('and this');
        close STDERR;
        open STDERR, '>&', $saved or die $!;
        $text;
    };
    is("@printed", "warning: 3 of these\ninfo: and this\n");
    fails { mx->logging->set_log('loud') } 'invalid_argument', qr/loud/;
};

test 'a logger that dies loses no object' => sub {
    my @warned;
    local $SIG{__WARN__} = sub { push @warned, @_ };
    my $manager = mx->manager->new(symbol => regression(), contexts => [mx->cpu], batch_size => 2, data_shapes => [[data => [2, 2]]],
        param_names => ['fc_weight'], logger => sub { die "no paper\n" });
    is($manager->num_buckets, 0);
    is_deeply(\@warned, ["no paper\n"]);
};

test 'handles of another kind, and none at all, are refused' => sub {
    my $symbol = mlp();
    fails { AI::Cohort::FFI::cohort_ndarray_wait($symbol->handle) } 'invalid_argument', qr/array/;
    fails { AI::Cohort::FFI::cohort_ndarray_wait(undef) } 'invalid_argument', qr/NULL/;
    fails { mx->metric->create('acc')->update([$symbol], [$symbol]) } 'invalid_argument', qr/array/;
};

finish();
