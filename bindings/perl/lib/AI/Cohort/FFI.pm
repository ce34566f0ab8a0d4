# SPDX-License-Identifier: Apache-2.0
package AI::Cohort::FFI;
use strict;
use warnings;
use AI::Cohort::Error;
use AI::Cohort::FFI::Declarations;
use DynaLoader ();
use FFI::CheckLib 0.25 ();
use FFI::Platypus 2.00;
use FFI::Platypus::Buffer qw(buffer_to_scalar scalar_to_pointer);
use FFI::Platypus::Memory qw(memcpy);
use overload ();
use Scalar::Util qw(blessed looks_like_number);
use Exporter qw(import);

our @EXPORT = qw(handle_of handles_of texts_of struct list_of_names attributes_of shape_of list_of hash_of settings_of invalid
    callback callbacks forget_callback lent lent_texts);

# Defines a function of this name in another package, which returns a class.
sub _word_for {
    my ($class, $package, @words) = @_;
    no strict 'refs';
    for my $word (@words) {
        invalid("use $class: expected a word, found '$word'", $word) unless $word =~ /^[a-zA-Z_]\w*$/;
        *{"${package}::$word"} = sub () {$class};
    }
}

our $LIBRARY;

# ---- the library ---------------------------------------------------------------------------------------------------

sub find_library {
    my $place = $ENV{COHORT_LIB};
    if (defined $place && length $place) {
        my $path = -d $place ? "$place/libcohort.so" : $place;
        return $path if -e $path;
        _cannot_load($path, "$path: cannot open shared object file: No such file or directory");
    }
    return FFI::CheckLib::find_lib(lib => 'cohort') // _cannot_load('libcohort.so', 'it is not where the linker looks');
}

sub _cannot_load {
    my ($path, $reason) = @_;
    AI::Cohort::Error->throw(io =>
          "libcohort cannot be loaded; COHORT_LIB may name it or the folder it is in. Tried $path: $reason", $path);
}

# The library lacks a function, or is older than these declarations.
sub _too_old {
    my ($found) = @_;
    my $needed = $AI::Cohort::FFI::Declarations::LIBRARY_VERSION;
    AI::Cohort::Error->throw(unsupported => "$found; this package needs libcohort $needed or later", $LIBRARY);
}

die "AI::Cohort is for 64-bit systems\n" if length pack('J', 0) != 8;    # see struct()
$LIBRARY = find_library();
DynaLoader::dl_load_file($LIBRARY, 0) or _cannot_load($LIBRARY, DynaLoader::dl_error());    # says what is missing
my $ffi = FFI::Platypus->new(api => 2, lib => $LIBRARY);

# The error that a callback died with, on its way through the library to the Perl call that it ran in.
my ($thrown, $has_thrown);

sub _throw_error {
    my ($error) = @_;
    my @facts = (cohort_error_code($error), cohort_error_message($error), cohort_error_subject($error));
    cohort_error_free($error);
    _rethrow() if $has_thrown;
    AI::Cohort::Error->throw(@facts);
}

sub _rethrow {
    my $reason = $thrown;
    ($thrown, $has_thrown) = ();
    die $reason;
}

# Owners of memory that the library is done with. Their destructors may call the library, which a deleter must not: they are
# released when the call that the deleter ran in has returned.
my @released;

sub release { push @released, @_ }

sub _let_go {
    while (@released) { my @gone = splice @released }
}

# Text is UTF-8 in the library and ends at a zero byte: encoded on the way in, decoded on the way out.
sub encode_text {
    my ($text) = @_;
    invalid("expected text, found '$text'", 'text') if ref $text && !overload::Method($text, '""');
    return $text if !defined $text || $text !~ /[^\x01-\x7f]/;
    AI::Cohort::Error->throw(invalid_argument => 'text: found a zero byte in it', 'text') if $text =~ /\0/;
    utf8::encode($text);
    return $text;
}

sub decode_text {
    my ($text) = @_;
    utf8::decode($text) if defined $text;
    return $text;
}

# Checks a number for a C function: a number, and an integer in range if the type requires it.
sub _check_number {
    my ($name, $place, $type, $value) = @_;
    return if defined $value && looks_like_number($value) && ($type eq 'double' || abs $value < 2**63);
    my $found = defined $value ? "'$value'" : 'undef';
    invalid("$name: value " . ($place + 1) . ": expected a number, found $found", $name);
}

# A pointer for an empty list of names, because NULL means all.
my $nothing = pack 'J', 0;
my $no_texts = scalar_to_pointer($nothing);

my %letter = (opaque => 'J', size_t => 'J', sint64 => 'q', sint32 => 'l', double => 'd');

# The Perl function around a library function: it converts text and lists, and throws errors. A list that is undef is NULL.
sub _wrapped {
    my ($name, $raw, $fails, @types) = @_;
    my @numbers = grep { $types[$_] =~ /^(?:sint32|sint64|uint64|size_t|double)$/ } 0 .. $#types;
    my $call = !$fails ? $raw : sub {
        for (@numbers) { looks_like_number($_[$_]) && abs $_[$_] < 2**63 or _check_number($name, $_, $types[$_], $_[$_]) }
        my $error = &$raw;
        _let_go() if @released;
        _throw_error($error) if defined $error;
        _rethrow() if $has_thrown;
        return;
    };
    my @texts = grep { $types[$_] eq 'string' } 0 .. $#types;
    my @given = grep { $types[$_] eq 'string*' } 0 .. $#types;
    my %lists = map { $types[$_] =~ /^(\w+)\[/ ? ($_ => $letter{$1}) : () } 0 .. $#types;    # no letter: a list of texts
    my @filled = grep { $types[$_] =~ /\[out\]/ } 0 .. $#types;
    return $call unless @texts || @given || %lists;
    return sub {
        my @arguments = @_;
        my %kept;
        $_ = encode_text($_) for @arguments[@texts];
        for my $i (keys %lists) {
            my $list = $arguments[$i] // next;
            my $packed = $lists{$i} && pack "$lists{$i}*", map { ref ? $_->{handle} : $_ // 0 } @$list;
            $kept{$i} = $lists{$i} ? {packed => \$packed, pointer => scalar_to_pointer($packed)} : texts_of($list);
            $arguments[$i] = @$list ? $kept{$i}{pointer} : $lists{$i} ? undef : $no_texts;
        }
        my $result = $call->(@arguments);
        @{$_[$_]} = unpack "$lists{$_}*", ${$kept{$_}{packed}} for grep { $kept{$_} } @filled;
        ${$_} = decode_text(${$_}) for grep {ref} @arguments[@given];
        return $fails ? () : $result;
    };
}

{
    no strict 'refs';
    my $functions = \%AI::Cohort::FFI::Declarations::FUNCTIONS;
    for my $name (sort keys %$functions) {
        my ($result, @types) = @{$functions->{$name}};
        my $fails = $result eq 'error';
        $ffi->find_symbol($name) or _too_old("$LIBRARY has no $name");
        my $function = $ffi->function($name => [map { /\[/ ? 'opaque' : $_ } @types] => $fails ? 'opaque' : $result);
        $function->attach("AI::Cohort::FFI::Raw::$name");
        my $raw = \&{"AI::Cohort::FFI::Raw::$name"};
        *$name = $result eq 'string' ? sub { decode_text(&$raw) } : _wrapped($name, $raw, $fails, @types);
        push @EXPORT, $name;
    }
    my $constants = \%AI::Cohort::FFI::Declarations::CONSTANTS;
    for my $name (keys %$constants) {
        my $value = $constants->{$name};
        *$name = sub () {$value};
        push @EXPORT, $name;
    }
}

{
    my ($major, $minor, $patch) = split /\./, $AI::Cohort::FFI::Declarations::LIBRARY_VERSION;
    _too_old("$LIBRARY is libcohort " . cohort_version()) if cohort_version_number() < $major * 10000 + $minor * 100 + $patch;
}

# At exit: waits, because queued work may read memory that Perl owns, and Perl frees objects in any order when it ends.
END { eval { cohort_wait_all() } if defined &cohort_wait_all }

# ---- arguments -----------------------------------------------------------------------------------------------------

# The pointer behind an object; the library itself reports a missing or a wrong one.
sub handle_of {
    my ($object, $what) = @_;
    return undef unless defined $object;
    return $object->{handle} if blessed $object && $object->isa('AI::Cohort::Handle');
    AI::Cohort::Error->throw(invalid_argument => "$what: expected an object of AI::Cohort, found '$object'", $what);
}

# A list of objects as an argument, which keeps them alive during the call.
sub handles_of {
    my ($objects, $what) = @_;
    handle_of($_, $what) for @{list_of($objects, $what)};
    return $objects || [];
}

# A packed list of texts, for structs. Keeps the memory that its pointers point to alive.
sub texts_of {

    my @texts = map { encode_text(defined $_ ? "$_" : '') } @{$_[0]};
    my $packed = pack 'P' x @texts, @texts;
    return {texts => \@texts, packed => \$packed, pointer => @texts ? scalar_to_pointer($packed) : undef};
}

# An options struct as memory: fields not given are zero. Values: numbers, objects, [lists of text], {memory}, "text". The
# memory lives as long as the returned object; pass its pointer on.
sub struct {
    my ($type, %values) = @_;
    my (@letters, @fields, @kept);
    my @declared = @{$AI::Cohort::FFI::Declarations::STRUCTS{$type}};
    while (my ($kind, $name) = splice @declared, 0, 2) {
        my $value = delete $values{$name};
        push @letters, $kind eq 'sint32' ? 'l' : $kind eq 'sint64' ? 'q' : $kind eq 'uint64' ? 'Q' : $kind eq 'double' ? 'd' : 'J';
        if ($kind ne 'opaque') {
            _check_number($type, $#letters, $kind, $value) if defined $value && !(looks_like_number($value) && abs $value < 2**63);
            push @fields, $value || 0;
            next;
        }
        push @kept, $value = texts_of($value) if ref $value eq 'ARRAY';
        if (ref $value eq 'SCALAR') {    # bytes
            push @kept, $value;
            push @fields, length $$value ? scalar_to_pointer($$value) : 0;
        }
        elsif (ref $value eq 'HASH') {
            push @kept, $value;
            push @fields, $value->{pointer} || 0;
        }
        else {
            # A number is an address: of a callback, or of its user data.
            my $is_address = !defined $value || !ref $value && $value =~ /^\d+$/;
            push @fields, ($is_address ? $value : handle_of($value, $name)) || 0;
        }
    }
    die "$type has no field ", join(', ', keys %values) if %values;
    my $template = join ' ', map { /l/ ? 'l x!8' : $_ } @letters;
    # Two consecutive 32-bit fields are packed without padding.
    $template =~ s/l x!8(?= l)/l/g;
    my $bytes = pack "$template x!8", @fields;
    my $first = $AI::Cohort::FFI::Declarations::STRUCTS{$type}[1];
    substr($bytes, 0, length pack 'J', 0) = pack 'J', length $bytes if $first eq 'struct_size';
    return {bytes => \$bytes, kept => \@kept, pointer => scalar_to_pointer($bytes)};
}

# An array ref, or [] for undef; likewise a hash ref.
sub list_of {
    my ($given, $what) = @_;
    return $given // [] if !defined $given || ref $given eq 'ARRAY';
    invalid("$what: expected a list, found '$given'", $what);
}

sub hash_of {
    my ($given, $what) = @_;
    return $given // {} if !defined $given || ref $given eq 'HASH';
    invalid("$what: expected a hash, found '$given'", $what);
}

# Names and values as a hash. Names other than the known ones are refused, unless any name is allowed.
sub settings_of {
    my ($what, $known, @given) = @_;
    invalid("$what: expected names and values, found one without the other", $what) if @given % 2;
    my %settings;
    while (my ($name, $value) = splice @given, 0, 2) {
        invalid("$what: expected a name, found " . ($name // 'undef'), $what) if !defined $name || ref $name;
        AI::Cohort::Error->throw(name => "$what: there is no option '$name'", $name) if $known && !grep { $_ eq $name } @$known;
        $settings{$name} = $value;
    }
    return %settings;
}

sub invalid {
    my ($message, $subject) = @_;
    AI::Cohort::Error->throw(invalid_argument => $message, $subject);
}

# An attribute or a setting in the library's spelling: (2, 2), 0.1, relu.
sub _attribute_text {
    my ($value) = @_;
    if (ref $value eq 'ARRAY') {
        my $inside = join ', ', map { defined $_ ? _attribute_text($_) : 'None' } @$value;
        return @$value == 1 ? "($inside,)" : "($inside)";
    }
    my $text = "$value";
    # A number with more digits than Perl prints by default.
    $text = sprintf '%.17g', $value if !ref $value && looks_like_number($value) && $text != $value && $value == $value;
    return $text;
}

# A hash of settings as three arguments: keys, values and their number. Undefined ones are left out.
sub attributes_of {
    my $settings = hash_of($_[0], 'settings');
    my @keys = grep { defined $settings->{$_} } sort keys %$settings;
    return (\@keys, [map { _attribute_text($settings->{$_}) } @keys], scalar @keys);
}

# A shape as two arguments: lengths and their number.
sub shape_of {
    my ($shape, $what) = @_;
    my @lengths = ref $shape eq 'ARRAY' ? @$shape : defined $shape && !ref $shape ? $shape : invalid(
        "$what: expected an array of lengths, found " . ($shape // 'undef'), $what);
    for (@lengths) {
        invalid("$what: expected a whole number, found '" . ($_ // 'undef') . "'", $what)
            if !defined $_ || ref $_ || !/^-?\d+(?:\.0*)?$/;
    }
    return ([map {int} @lengths], scalar @lengths);
}

# A list of names that is read by count and index: both functions have the same arguments before these.
sub list_of_names {
    my ($count, $at, @arguments) = @_;
    $count->(@arguments, \my $num);
    return [map { $at->(@arguments, $_, \my $name); $name } 0 .. $num - 1];
}

# The string of bytes that a call writes, which is asked for their number first.
sub _bytes_from {
    my ($function, $handle) = @_;
    $function->($handle, undef, 0, \my $bytes);
    my $memory = "\0" x $bytes;
    $function->($handle, scalar_to_pointer($memory), $bytes, undef);
    return $memory;
}

# Gives a string of bytes to a call.
sub _bytes_to {
    my ($function, $handle, $memory, $what) = @_;
    invalid("set_$what: expected a string of bytes", $what) if !defined $memory || ref $memory || !utf8::downgrade($memory, 1);
    $function->($handle, scalar_to_pointer($memory), length $memory);
    return;
}

# ---- callbacks -----------------------------------------------------------------------------------------------------

# One C function for each kind of callback, which lives as long as the process. Its user_data is a number that finds the Perl
# functions, by name: forgotten ones are not called, so that no callback can reach freed memory.
my (%subs, $last_id, %kinds);
# Callbacks that release memory or functions run even after a failure.
my %always = map { $_ => 1 } '(opaque)->void', '(opaque,opaque)->void';

# Writes to an address that a callback was given.
sub write_at { memcpy($_[0], scalar_to_pointer($_[1]), length $_[1]) }
sub read_at { buffer_to_scalar($_[0], $_[1]) }
sub lent { $_[1] ? [unpack 'J*', buffer_to_scalar($_[0], $_[1] * length pack 'J', 0)] : [] }
sub lent_texts { [map { decode_text($ffi->cast(opaque => 'string', $_)) } @{lent(@_)}] }

sub _kind_of_callback {
    my ($name, $signature) = @_;
    return $kinds{"$name$signature"} //= do {
        my $returns = $signature =~ /->sint32$/;
        my $always = $always{$signature};
        my $closure = $ffi->closure(sub {
            my $sub = $subs{$_[-1]} && $subs{$_[-1]}{$name};
            return $returns ? 1 : () if !$sub || $has_thrown && !$always;
            local ($@, $!);
            my @given = @_[0 .. $#_ - 1];
            my ($result, $done);
            # Inside a comparison of sort, which "next" and "last" cannot leave: they would jump out of the library's call.
            my @two = sort { $done = eval { $result = $sub->(@given); 1 }; 0 } 0, 1;
            return $returns ? $result || 0 : () if $done;
            ($thrown, $has_thrown) = ($@, 1);
            return $returns ? 1 : ();
        });
        $closure->sticky;
        $ffi->cast($signature => 'opaque', $closure);
    };
}

# The addresses of C functions by name, and their user_data. forget_callback(user_data) removes them, and returns the Perl
# functions.
sub callbacks {
    my (%given) = @_;
    $subs{++$last_id} = {map { $_ => $given{$_}[1] } keys %given};
    return ({map { $_ => _kind_of_callback($_, $given{$_}[0]) } keys %given}, $last_id);
}

# One of them.
sub callback {
    my ($signature, $sub) = @_;
    my ($functions, $id) = callbacks('' => [$signature => $sub]);
    return ($functions->{''}, $id);
}

sub forget_callback { map { delete $subs{$_} } grep {defined} @_ }
sub _num_callbacks { scalar keys %subs }

# ---- handles -------------------------------------------------------------------------------------------------------

package AI::Cohort::Handle;

# Frees the library's object now. Other references to this object then have no handle.
sub _close {
    my ($self) = @_;
    my $handle = delete $self->{handle};
    $self->free_handle($handle) if defined $handle;
}

sub adopt {
    my ($class, $pointer, %fields) = @_;
    return defined $pointer ? bless({%fields, handle => $pointer}, $class) : undef;
}

sub handle { $_[0]{handle} }

sub DESTROY {
    my ($self) = @_;
    my $handle = delete $self->{handle};
    # At the end of the process Perl's functions may be gone already; the memory is freed with the process.
    return if ${^GLOBAL_PHASE} eq 'DESTRUCT';
    local ($@, $!, $?);
    $self->free_handle($handle) if defined $handle;
    AI::Cohort::FFI::_let_go();
    # Callbacks are released after the object, by their ids.
    AI::Cohort::FFI::forget_callback(@$self{grep {/_id$/} keys %$self});
    return;
}

# Classes that can be stored override this.
sub STORABLE_freeze { AI::Cohort::FFI::invalid(ref($_[0]) . ': objects of this class cannot be stored or cloned', ref $_[0]) }

# A handle belongs to the interpreter that created it.
sub CLONE_SKIP {1}

1;

