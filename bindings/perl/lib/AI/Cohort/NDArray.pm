# SPDX-License-Identifier: Apache-2.0
package AI::Cohort::NDArray;
use strict;
use warnings;
use AI::Cohort::FFI;
use AI::Cohort::Context;
use AI::Cohort::Arrays;
use AI::Cohort::AutoGrad;
use AI::Cohort::Operator;
use FFI::Platypus::Buffer qw(scalar_to_pointer);
use List::Util qw(product);
use Scalar::Util qw(blessed looks_like_number);

our @ISA = ('AI::Cohort::Handle');

use overload
    '""' => sub { $_[0]->_stringify },
    bool => sub {1},
    AI::Cohort::Operator::_overloads(),
    AI::Cohort::Operator::_overloads_in_place(),
    '.=' => sub { $_[0]->set($_[1]) },
    '=' => sub { $_[0] },
    '@{}' => sub { my ($self) = @_; [map { $self->at($_) } 0 .. $self->len - 1] },
    # eq compares objects; == compares elements.
    'eq' => sub { ref $_[1] && Scalar::Util::refaddr($_[0]) == Scalar::Util::refaddr($_[1]) },
    'ne' => sub { !ref $_[1] || Scalar::Util::refaddr($_[0]) != Scalar::Util::refaddr($_[1]) },
    fallback => undef;

# ---- dtypes ----------------------------------------------------------------------------------------------------------

my %code_of = map { my $n = $_; (lc =~ s/^cohort_dtype_//r) => do { no strict 'refs'; &$n() } }
    grep {/^COHORT_DTYPE_/} keys %AI::Cohort::FFI::Declarations::CONSTANTS;
my %name_of = reverse %code_of;
my %letter_of = (float32 => 'f', float64 => 'd', uint8 => 'C', int32 => 'l', int8 => 'c', int64 => 'q', bool => 'C');
# Dtypes of PDL and back; other types are converted.
my %of_pdl_type = (
    float => 'float32', double => 'float64', byte => 'uint8', sbyte => 'int8', long => 'int32', longlong => 'int64',
    indx => 'int64',
);
my %pdl_type_of = (reverse(%of_pdl_type), int64 => 'longlong', bool => 'byte');

sub dtype_code {
    my ($dtype) = @_;
    invalid('dtype: expected a name, found ' . ($dtype // 'undef'), 'dtype') if !defined $dtype || ref $dtype;
    return $code_of{$dtype} if exists $code_of{$dtype};
    return $dtype if $dtype =~ /^-?\d+$/;
    cohort_dtype_parse($dtype, \my $code);    # reports an unknown dtype
    return $code;
}

sub dtype_names { grep { $_ ne 'none' } sort keys %code_of }
sub dtype_name { $_[0] == COHORT_DTYPE_NONE ? undef : $name_of{$_[0]} }

# ---- making arrays ---------------------------------------------------------------------------------------------------

my @placed = qw(dtype ctx);

sub _make {
    my ($function, $class, $shape, $more, @given) = @_;
    my %given = settings_of('array', [@placed, 'out'], @given);
    if (defined $given{out}) {    # write to it instead
        invalid("out: expected an array, found '$given{out}'", 'out') unless blessed $given{out} && $given{out}->isa(__PACKAGE__);
        return $given{out}->set(@$more ? $more->[0] : 0);
    }
    my ($lengths, $num) = shape_of($shape, 'shape');
    my $context = AI::Cohort::Context->_pointer_to($given{ctx});
    $function->($lengths, $num, dtype_code($given{dtype} // 'float32'), $context, @$more, \my $handle);
    return $class->adopt($handle);
}

sub zeros { my ($class, $shape, @given) = @_; _make(\&cohort_ndarray_zeros, $class, $shape, [], @given) }
sub empty { my ($class, $shape, @given) = @_; _make(\&cohort_ndarray_empty, $class, $shape, [], @given) }
sub ones { my ($class, $shape, @given) = @_; _make(\&cohort_ndarray_full, $class, $shape, [1], @given) }
sub full { my ($class, $shape, $value, @given) = @_; _make(\&cohort_ndarray_full, $class, $shape, [$value], @given) }

# Like the operator: mx->nd->arange(stop => 30), or arange(30), or arange(2, 30).
sub arange {
    my ($class, @given) = @_;
    my @plain;
    push @plain, shift @given while @given && looks_like_number($given[0]);
    my %range = @plain > 1 ? (start => $plain[0], stop => $plain[1]) : @plain ? (start => 0, stop => $plain[0]) : (start => 0);
    %range = (%range, settings_of('arange', [qw(start stop step repeat ctx dtype)], @given));
    return AI::Cohort::Operator::invoke('_arange', %range);
}

sub from_bytes {
    my ($class, $bytes, $shape, @given) = @_;
    my %given = settings_of('from_bytes', \@placed, @given);
    my ($lengths, $num) = shape_of($shape, 'shape');
    invalid('from_bytes: expected bytes', 'bytes') if !defined $bytes || ref $bytes;
    invalid('from_bytes: expected bytes, found characters beyond them', 'bytes') unless utf8::downgrade($bytes, 1);
    cohort_ndarray_from_host(scalar_to_pointer($bytes), length $bytes, $lengths, $num, dtype_code($given{dtype} // 'float32'),
        AI::Cohort::Context->_pointer_to($given{ctx}), \my $handle);
    return $class->adopt($handle);
}

# From a number, nested array refs, a PDL or another array: always a copy.
sub array {
    my ($class, $source, @given) = @_;
    my %given = settings_of('array', \@placed, @given);
    if (blessed $source && $source->isa(__PACKAGE__)) {
        my %like = (dtype => $given{dtype} // $source->dtype, ctx => $given{ctx} // $source->context);
        return $source->copyto($class->empty($source->shape, %like));
    }
    return $class->from_pdl($source, dtype => 'float32', %given) if blessed $source && $source->isa('PDL');
    invalid('array: expected numbers, array refs or a PDL, found ' . ($source // 'undef'), 'array')
        if !defined $source || ref $source && ref $source ne 'ARRAY';
    my @shape;
    for (my $level = $source; ref $level eq 'ARRAY'; $level = $level->[0]) { push @shape, scalar @$level }
    my @values;
    _flatten($source, \@values, @shape);
    my $dtype = $given{dtype} // 'float32';
    my $letter = $letter_of{$dtype};
    return $class->from_bytes(pack("$letter*", @values), \@shape, %given) if $letter;
    return $class->from_bytes(pack('f*', @values), \@shape)->astype($dtype, $given{ctx});
}

sub _flatten {
    my ($level, $values, @shape) = @_;
    if (!@shape) {
        invalid('array: its rows are of different lengths', 'array') if ref $level;
        invalid('array: expected numbers, found ' . (defined $level ? "'$level'" : 'undef'), 'array')
            unless looks_like_number($level);
        push @$values, $level;
        return;
    }
    my $length = shift @shape;
    invalid('array: its rows are of different lengths', 'array') if ref $level ne 'ARRAY' || @$level != $length;
    _flatten($_, $values, @shape) for @$level;
}

# ---- PDL -------------------------------------------------------------------------------------------------------------

# PDL counts axes from the fastest; the library's shape is the reverse.
sub _pdl_shape { [reverse $_[0]->dims] }

sub _pdl_of_a_dtype {
    my ($pdl) = @_;
    AI::Cohort::Error->throw(dtype => "array: there are no elements of a PDL's type @{[$pdl->type]}", 'array') unless $pdl->type->real;
    invalid('array: expected numbers, found bad values in a PDL', 'array') if $pdl->badflag && $pdl->nbad > 0;
    return $of_pdl_type{$pdl->type} ? $pdl : $pdl->convert(PDL::Type->new("double"));
}

# The elements are copied once, from PDL's memory to the array's.
sub from_pdl {
    my ($class, $pdl, @given) = @_;
    my %given = settings_of('from_pdl', \@placed, @given);
    $pdl = _pdl_of_a_dtype($pdl);
    my $dtype = $of_pdl_type{$pdl->type};
    my $wanted = $given{dtype} // $dtype;
    my $memory = $pdl->get_dataref;
    my ($lengths, $num) = shape_of(_pdl_shape($pdl), 'shape');
    cohort_ndarray_from_host(scalar_to_pointer($$memory), _bytes_of_pdl($pdl), $lengths, $num, dtype_code($dtype),
        AI::Cohort::Context->_pointer_to($wanted eq $dtype ? $given{ctx} : undef), \my $handle);
    my $array = $class->adopt($handle);
    return $wanted eq $dtype ? $array : $array->astype($wanted, $given{ctx});
}

sub _bytes_of_pdl { $_[0]->nelem * PDL::Core::howbig($_[0]->get_datatype) }

# An array on memory of the caller's: of a PDL, or of a string of packed numbers. The library keeps the owner alive until it
# calls the deleter.
sub wrap {
    my ($class, $owner, @given) = @_;
    my %given = settings_of('wrap', ['shape', @placed], @given);
    my ($memory, $shape, $dtype, $bytes) =
        blessed $owner && $owner->isa('PDL') ? _memory_of_pdl($owner) : _memory_of_string($owner, %given);
    my ($lengths, $num) = shape_of($shape, 'shape');
    my $code = dtype_code($dtype);
    cohort_dtype_bytes($code, \my $each);
    my $needed = $each * product(1, @$lengths);
    my $text = join ', ', @$lengths;
    AI::Cohort::Error->throw(shape => "wrap: shape ($text) of $dtype takes $needed bytes, found $bytes", 'wrap')
        if $needed != $bytes;
    my @kept = ($owner, $memory);
    my ($deleter, $id);
    ($deleter, $id) = callback('(opaque,opaque)->void', sub { AI::Cohort::FFI::release(splice @kept); forget_callback($id) });
    my $handle;
    eval {
        cohort_ndarray_wrap(scalar_to_pointer($$memory), $lengths, $num, $code, AI::Cohort::Context->_pointer_to($given{ctx}),
            $deleter, $id, \$handle);
        1;
    } or do {
        my $error = $@;
        forget_callback($id);
        die $error;
    };
    return $class->adopt($handle);
}

# A PDL of a few bytes stores them inside itself, where they cannot be shared.
use constant SMALLEST_SHARED => 128;

sub _memory_of_pdl {
    my ($pdl) = @_;
    my $dtype = $of_pdl_type{$pdl->type} or invalid('wrap: no dtype has elements like a PDL of type ' . $pdl->type, 'wrap');
    my $bytes = _bytes_of_pdl($pdl);
    invalid("wrap: expected a PDL of @{[SMALLEST_SHARED]} bytes or more, found $bytes; array() copies smaller ones", 'wrap')
        if $bytes < SMALLEST_SHARED;
    my $memory = $pdl->get_dataref;
    $pdl->upd_data;    # makes PDL use this memory itself from now on
    return ($memory, _pdl_shape($pdl), $dtype, $bytes);
}

sub _memory_of_string {
    my ($string, %given) = @_;
    invalid('wrap: expected a PDL or a reference to a string, found ' . ($string // 'undef'), 'wrap')
        if ref $string ne 'SCALAR' || !defined $$string;
    invalid('wrap: expected bytes, found characters beyond them', 'wrap') unless utf8::downgrade($$string, 1);
    substr $$string, 0, 0, '';    # Perl shares the memory of assigned strings (copy-on-write), but not of one that has been changed
    return ($string, $given{shape}, $given{dtype} // 'float32', length $$string);
}

sub aspdl {
    my ($self) = @_;
    require PDL::Lite;
    my $type = $pdl_type_of{$self->dtype} or return $self->astype('float32')->aspdl;
    my $pdl = PDL->new_from_specification(PDL::Type->new($type), reverse @{$self->shape});
    return $self->read_into($pdl);
}

# Into an existing PDL: the elements are copied once.
sub read_into {
    my ($self, $pdl) = @_;
    invalid('read_into: expected a PDL, found ' . ($pdl // 'undef'), 'read_into') unless blessed $pdl && $pdl->isa('PDL');
    my ($dtype, $type) = ($self->dtype, $pdl_type_of{$self->dtype} // '');
    AI::Cohort::Error->throw(dtype => "read_into: a PDL of type @{[$pdl->type]} does not take elements of $dtype", 'read_into')
        if $pdl->type ne $type && !($type eq 'longlong' && $pdl->type eq 'indx');
    my $found = join ', ', @{_pdl_shape($pdl)};
    my $shape = join ', ', @{$self->shape};
    AI::Cohort::Error->throw(shape => "read_into: an array of shape ($shape) does not fit a PDL of shape ($found)", 'read_into')
        if $found ne $shape;
    my $memory = $pdl->get_dataref;
    cohort_ndarray_read($self->{handle}, scalar_to_pointer($$memory), _bytes_of_pdl($pdl));
    $pdl->upd_data;
    return $pdl;
}

# ---- properties --------------------------------------------------------------------------------------------------------

sub shape {
    my ($self) = @_;
    my @shape = (0) x COHORT_MAX_AXES;
    cohort_ndarray_shape($self->{handle}, \@shape, COHORT_MAX_AXES, \my $axes);
    return [@shape[0 .. $axes - 1]];
}

sub size {
    my ($self) = @_;
    cohort_ndarray_size($self->{handle}, \my $size);
    return $size;
}

sub ndim { scalar @{$_[0]->shape} }

sub len {
    my ($self) = @_;
    return $self->shape->[0] // AI::Cohort::Error->throw(shape => 'an array without axes has no rows', 'array');
}

sub dtype {
    my ($self) = @_;
    cohort_ndarray_dtype($self->{handle}, \my $code);
    return dtype_name($code);
}

sub context { AI::Cohort::Context->_from_call(\&cohort_ndarray_context, $_[0]{handle}) }
sub ctx { $_[0]->context }

sub _stringify {
    my ($self) = @_;
    return sprintf '<%s %s @%s>', ref $self, join('x', @{$self->shape}), $self->context;
}

sub free_handle { cohort_ndarray_free($_[1]) }

# ---- elements --------------------------------------------------------------------------------------------------------

sub bytes {
    my ($self) = @_;
    cohort_ndarray_bytes($self->{handle}, \my $bytes);
    my $memory = "\0" x $bytes;
    cohort_ndarray_read($self->{handle}, scalar_to_pointer($memory), $bytes);
    return $memory;
}

# All elements in one list, row by row.
sub aslist {
    my ($self) = @_;
    my $letter = $letter_of{$self->dtype} or return $self->astype('float32')->aslist;
    return [unpack "$letter*", $self->bytes];
}

# All elements in nested lists.
sub asarray {
    my ($self) = @_;
    my @level = @{$self->aslist};
    my @shape = @{$self->shape};
    return $level[0] unless @shape;
    for my $length (reverse @shape[1 .. $#shape]) {
        my @rows;
        push @rows, [splice @level, 0, $length] while @level;
        @level = @rows;
    }
    return \@level;
}

sub asscalar {
    my ($self) = @_;
    AI::Cohort::Error->throw(shape => 'asscalar: expected one element, found ' . $self->size, 'asscalar') if $self->size != 1;
    return $self->aslist->[0];
}

# From a number, an array, a PDL or nested array refs.
sub set {
    my ($self, $value) = @_;
    invalid('set: expected a value, found undef', 'set') unless defined $value;
    if (!ref $value) { cohort_ndarray_fill($self->{handle}, $value) }
    elsif (blessed $value && $value->isa(__PACKAGE__)) { $value->copyto($self) }
    elsif (blessed $value && $value->isa('PDL')) { __PACKAGE__->from_pdl($value)->copyto($self) }
    else { __PACKAGE__->array($value, dtype => $self->dtype)->copyto($self) }
    return $self;
}

# Implements += and the like.
sub _replace {
    my ($self, $what, $value) = @_;
    AI::Cohort::Operator::_arithmetic($what, $self, $value, 0, out => $self);
}

sub uniform {
    my ($self, $low, $high, $seed) = @_;
    return AI::Cohort::Random::uniform(@_) unless ref $self;
    cohort_ndarray_fill_uniform($self->{handle}, $low, $high, $seed);
    return $self;
}

sub normal {
    my ($self, $mean, $deviation, $seed) = @_;
    return AI::Cohort::Random::normal(@_) unless ref $self;
    cohort_ndarray_fill_normal($self->{handle}, $mean, $deviation, $seed);
    return $self;
}

sub wait_to_read { cohort_ndarray_wait($_[0]{handle}) }
sub waitall { cohort_wait_all() }

# ---- copies ----------------------------------------------------------------------------------------------------------

sub copyto {
    my ($self, $other) = @_;
    return $self->copyto(AI::Cohort::NDArray->empty($self->shape, dtype => $self->dtype, ctx => $other))
        if blessed $other && $other->isa('AI::Cohort::Context');
    return $other if blessed $other && $other->isa(__PACKAGE__) && AI::Cohort::AutoGrad::_copied($self, $other);
    cohort_ndarray_copy_to($self->{handle}, handle_of($other, 'copyto'));
    return $other;
}

sub copy { $_[0]->copyto($_[0]->context) }

sub as_in_context {
    my ($self, $context) = @_;
    $context = AI::Cohort::Context->of($context);
    return $self->context == $context ? $self : $self->copyto($context);
}

sub astype {
    my ($self, $dtype, $context) = @_;
    return $self->copyto(AI::Cohort::NDArray->empty($self->shape, dtype => $dtype, ctx => $context // $self->context));
}

# ---- views -----------------------------------------------------------------------------------------------------------

# A second handle on the same array.
sub share {
    my ($class, $pointer) = @_;
    $pointer = $class->{handle} if ref $class;
    cohort_ndarray_share($pointer, \my $handle);
    return AI::Cohort::NDArray->adopt($handle, ref $class ? (tape => $class->{tape}) : ());
}

sub _row_index {
    my ($self, $index) = @_;
    invalid('row: expected a number, found ' . ($index // 'undef'), 'row') unless defined $index && $index =~ /^-?\d+$/;
    return $index < 0 ? $index + $self->len : $index;
}

# Rows [first, last], the last one included, or one row; both may count from the end. A view, but a recorded copy while
# gradients are to flow through. These are lvalues so that .= can be applied to them.
sub slice : lvalue {
    my ($self, @ranges) = @_;
    my $view;
    if (ref $self && @ranges > 1 && @ranges == $self->ndim) { $view = AI::Cohort::NDArray::Slice->of($self, @ranges) }
    elsif (!ref $self || @ranges != 1 || ref $ranges[0] eq 'HASH' || blessed $ranges[0]) {
        $view = AI::Cohort::Operator::invoke('slice', $self, @ranges);
    }
    else {
        my ($first, $last) = ref $ranges[0] ? @{list_of($ranges[0], 'slice')} : ($ranges[0]) x 2;
        my ($begin, $end) = ($self->_row_index($first), $self->_row_index($last // $first) + 1);
        cohort_ndarray_slice($self->{handle}, $begin, $end, \my $handle);
        $view = $self->_rows($handle, $begin, $end);
    }
    $view;
}

sub at : lvalue {
    my ($self, $index) = @_;
    my $row = $self->_row_index($index);
    cohort_ndarray_at($self->{handle}, $row, \my $handle);
    my $view = $self->_rows($handle, $row, $row + 1);
}

# A view of rows, or while recording a copy that refers to its array.
sub _rows {
    my ($self, $handle, $begin, $end) = @_;
    my $view = AI::Cohort::NDArray->adopt($handle);
    return AI::Cohort::AutoGrad::_active() ? AI::Cohort::NDArray::Slice->of_rows($self, $view, $begin, $end) : $view;
}

# Like the operator, but a view for the first axis.
sub slice_axis {
    my ($self, @arguments) = @_;
    $self = shift @arguments unless ref $self;
    invalid('slice_axis: expected an array', 'slice_axis') unless blessed $self && $self->isa(__PACKAGE__);
    @arguments = %{$arguments[0]} if ref($arguments[0] // '') eq 'HASH';
    my %given = settings_of('slice_axis', [qw(axis begin end out)], @arguments);
    for (grep {defined} @given{qw(axis begin end)}) {
        invalid("slice_axis: expected a number, found '$_'", 'slice_axis') unless /^-?\d+$/;
    }
    my ($axis, $begin, $end) = ($given{axis} // 0, $given{begin} // 0, $given{end});
    return AI::Cohort::Operator::invoke('slice_axis', $self, %given, axis => $axis, begin => $begin, end => $end // 'None')
        if $given{out} || $begin < 0 || defined $end && $end < 0 || AI::Cohort::AutoGrad::_knows($self);
    cohort_ndarray_slice_axis($self->{handle}, $axis, $begin, $end // ~0 >> 1, \my $handle);
    return AI::Cohort::NDArray->adopt($handle);
}

# The same elements in another shape: -1 is the remaining length, 0 the length of the axis. A view.
sub reshape : lvalue {
    my ($self, $shape, @given) = @_;
    my ($lengths, $num) = shape_of($shape, 'shape');
    my %given = settings_of('reshape', ['reverse'], @given);
    # For -2, -3, -4 and counting from the end, the operator computes the shape.
    $lengths = AI::Cohort::AutoGrad->pause(sub { AI::Cohort::Operator::invoke('Reshape', $self, shape => $lengths, reverse => $given{reverse}) })->shape
        if $given{reverse} || grep { $_ < -1 } @$lengths;
    my $own = grep({ $_ == 0 } @$lengths) && $self->shape;
    $lengths->[$_] ||= $own->[$_] for 0 .. $#$lengths;
    cohort_ndarray_reshape($self->{handle}, $lengths, scalar @$lengths, \my $handle);
    my $view = AI::Cohort::NDArray->adopt($handle, tape => $self->{tape});
}

# Moves one axis, and keeps the order of the others. A copy.
sub moveaxis {
    my ($self, $from, $to) = @_;
    my @axes = 0 .. $self->ndim - 1;
    for ($from, $to) {
        invalid('moveaxis: expected two axes, found ' . ($_ // 'undef'), 'moveaxis') unless defined && /^-?\d+$/;
        $_ += @axes if $_ < 0;
        invalid("moveaxis: axis $_ of " . @axes, 'moveaxis') if $_ < 0 || $_ >= @axes;
    }
    splice @axes, $to, 0, splice @axes, $from, 1;
    return AI::Cohort::Operator::invoke('transpose', $self, axes => \@axes);
}

sub maximum { AI::Cohort::Operator::_arithmetic('maximum', @_[0, 1]) }
sub minimum { AI::Cohort::Operator::_arithmetic('minimum', @_[0, 1]) }
sub hypot { AI::Cohort::Operator::_arithmetic('hypot', @_[0, 1]) }

sub concatenate {
    my ($class, $arrays, @given) = @_;
    my %given = settings_of('concatenate', ['axis'], @given);
    $arrays = handles_of($arrays, 'arrays');
    return AI::Cohort::Operator::invoke('Concat', $arrays, dim => $given{axis} // 0) if AI::Cohort::AutoGrad::_active();
    cohort_ndarray_concat($arrays, scalar @$arrays, $given{axis} // 0, \my $handle);
    return (ref $class || $class)->adopt($handle);
}

# ---- gradients -------------------------------------------------------------------------------------------------------

# Attaches a gradient, which starts with zeros.
sub attach_grad {
    my ($self, @given) = @_;
    my %given = settings_of('attach_grad', [qw(grad_req stype)], @given);
    AI::Cohort::Error->throw(unsupported => "attach_grad: expected stype default, found '$given{stype}'", 'stype')
        if ($given{stype} // 'default') ne 'default';
    my $zeros = AI::Cohort::NDArray->zeros($self->shape, dtype => $self->dtype, ctx => $self->context);
    AI::Cohort::AutoGrad->mark_variables([$self], [$zeros], grad_reqs => $given{grad_req});
    return;
}

sub grad { $_[0]{grad} }
sub backward { my $self = shift; AI::Cohort::AutoGrad->backward($self, @_) }

# Copies, because the tape recognises arrays by their memory.
sub detach {
    my ($self) = @_;
    return AI::Cohort::AutoGrad->pause(sub { $self->copy });
}

# ---- files -----------------------------------------------------------------------------------------------------------

sub save {
    my ($class, $path, $arrays) = @_;
    $arrays = [$class] if ref $class;
    my $list = AI::Cohort::Arrays->of($arrays // [], 'arrays');
    cohort_arrays_save($list->{handle}, $path);
    return;
}

# In NumPy's formats: one array, or several.
sub save_npy {
    my ($self, $path) = @_;
    my $list = AI::Cohort::Arrays->of([$self], 'array');
    cohort_arrays_save_npy($list->{handle}, $path);
    return;
}

sub save_npz {
    my ($class, $path, $arrays) = @_;
    my $list = AI::Cohort::Arrays->of($arrays // {}, 'arrays');
    cohort_arrays_save_npz($list->{handle}, $path);
    return;
}

# A hash ref if the arrays have names, else an array ref.
sub load {
    my ($class, $path, @given) = @_;
    my %given = settings_of('load', ['ctx'], @given);
    cohort_arrays_load($path, AI::Cohort::Context->_pointer_to($given{ctx}), \my $handle);
    return AI::Cohort::Arrays->adopt($handle)->content;
}

# The same from a string of bytes, and to one.
sub load_frombuffer {
    my ($class, $bytes, @given) = @_;
    my %given = settings_of('load_frombuffer', ['ctx'], @given);
    invalid('load_frombuffer: expected a string of bytes', 'bytes') if !defined $bytes || ref $bytes || !utf8::downgrade($bytes, 1);
    cohort_arrays_load_memory(scalar_to_pointer($bytes), length $bytes, AI::Cohort::Context->_pointer_to($given{ctx}), \my $handle);
    return AI::Cohort::Arrays->adopt($handle)->content;
}

sub save_tobuffer {
    my ($class, $arrays) = @_;
    my $list = AI::Cohort::Arrays->of($arrays // [], 'arrays');
    cohort_arrays_save_memory($list->{handle}, undef, 0, \my $bytes);
    my $memory = "\0" x $bytes;
    cohort_arrays_save_memory($list->{handle}, scalar_to_pointer($memory), $bytes, undef);
    return $memory;
}

sub STORABLE_freeze { $_[0]->save_tobuffer([$_[0]]) }

sub STORABLE_thaw {
    my ($self, $cloning, $bytes) = @_;
    my ($other) = @{(ref $self)->load_frombuffer($bytes)};
    $self->{handle} = delete $other->{handle};
}

AI::Cohort::Operator::_install(__PACKAGE__, \&AI::Cohort::Operator::invoke);

# ---- ranges of several axes ------------------------------------------------------------------------------------------

# A copy of ranges that refers to its array: values assigned to it are written back.
package AI::Cohort::NDArray::Slice;
use AI::Cohort::FFI;
our @ISA = ('AI::Cohort::NDArray');

# Each range is [first, last], both included, one index, or 'X' for all.
sub of {
    my ($class, $parent, @ranges) = @_;
    my $shape = $parent->shape;
    my (@begin, @end);
    for my $axis (0 .. $#ranges) {
        my $range = $ranges[$axis];
        my ($first, $last) = ref $range ? @{list_of($range, 'slice')} : ($range // '') eq 'X' ? (0, -1) : $range;
        $last //= $first;
        for ($first, $last) {
            invalid('slice: expected a range, found ' . ($_ // 'undef'), 'slice') unless defined && /^-?\d+$/;
            $_ += $shape->[$axis] if $_ < 0;
            invalid("slice: $_ is not in axis $axis of length $shape->[$axis]", 'slice') if $_ < 0 || $_ >= $shape->[$axis];
        }
        invalid("slice: $first to $last of axis $axis is no range", 'slice') if $first > $last;
        push @begin, $first;
        push @end, $last + 1;
    }
    my $copy = AI::Cohort::Operator::invoke('slice', $parent, begin => \@begin, end => \@end);
    return $class->adopt(delete $copy->{handle}, tape => $copy->{tape}, parent => $parent, range => {begin => \@begin, end => \@end});
}

# Rows as a view, or as a copy through which gradients flow while the array is being recorded.
sub of_rows {
    my ($class, $parent, $view, $begin, $end) = @_;
    my %from = (parent => $parent, range => {begin => [$begin], end => [$end]}, shape => [$end - $begin, @{$parent->shape}[1 .. $parent->ndim - 1]]);
    return $class->adopt(delete $view->{handle}, %from, is_view => 1) unless AI::Cohort::AutoGrad::_knows($parent);
    my $copy = AI::Cohort::Operator::invoke('slice', $parent, %{$from{range}})->reshape($view->shape);
    return $class->adopt(delete $copy->{handle}, %from, tape => $copy->{tape});
}

sub set {
    my ($self, $value) = @_;
    # The tape does not see writes through a view.
    my $is_recorded = Scalar::Util::blessed($value) && $value->isa('AI::Cohort::NDArray') && AI::Cohort::AutoGrad::_knows($value);
    return $self->SUPER::set($value) if $self->{is_view} && !$is_recorded;
    $self->SUPER::set($value) unless $self->{is_view};
    my $part = $self->{is_view} ? $value : $self;
    $part = $part->reshape($self->{shape}) if $self->{shape};
    AI::Cohort::Operator::invoke('_slice_assign', $self->{parent}, $part, %{$self->{range}}, out => $self->{parent});
    return $self;
}

sub _replace { my ($self, $what, $value) = @_; $self->set(AI::Cohort::Operator::_arithmetic($what, $self, $value, 0)) }

1;
