// SPDX-License-Identifier: Apache-2.0
// The kinds of iterators, with the names, types and defaults of MXNet's parameters. Frontends make their functions from
// them.
#include <initializer_list>

#include "data_iter.hpp"

namespace cohort_mxnet {
namespace {

using Params = std::vector<IterParam>;

constexpr const char *kInt = "int", *kCount = "int (non-negative)", *kLong = "long (non-negative)", *kFlag = "boolean",
                     *kFloat = "float", *kText = "string", *kShape = "Shape(tuple)", *kFloats = "tuple of <float>";

Params join(std::initializer_list<Params> lists) {
  Params all;
  for (const Params &list : lists) all.insert(all.end(), list.begin(), list.end());
  return all;
}

Params batch_params() {
  return {{"batch_size", kCount, nullptr, "Rows of a batch."},
          {"round_batch", kFlag, "1",
           "Whether the first rows fill the last batch up, and the next pass begins after them."}};
}

Params prefetch_params() {
  return {{"prefetch_buffer", kLong, "4", "Taken and not used: batches are made when they are asked for."},
          {"ctx", "{'cpu', 'gpu'}", "'gpu'", "Taken and not used: batches are on the host."},
          {"dtype", "{None, 'bfloat16', 'float16', 'float32', 'float64', 'int32', 'int64', 'int8', 'uint8'}", "'None'",
           "Element type of the batches; None: float32."}};
}

Params part_params() {
  return {{"num_parts", kInt, "'1'", "Parts that the data set is cut into, one for each worker."},
          {"part_index", kInt, "'0'", "The part that this iterator reads, from 0."}};
}

Params record_shuffle_params() {
  return {{"shuffle", kFlag, "0", "Whether the order of the records is random."},
          {"seed", kInt, "'0'", "Seed of that order."},
          {"verbose", kFlag, "1", "Taken and not used: nothing is printed."}};
}

Params image_record_params() {
  return join({{{"path_imglist", kText, "''", "A list of labels that replace those of the records."},
                {"path_imgrec", kText, "''", "The RecordIO file."},
                {"path_imgidx", kText, "''", "The index of the RecordIO file."},
                {"aug_seq", kText, "'aug_default'", "Names of the changes that are made to an image, in order."},
                {"label_width", kInt, "'1'", "Numbers in a label."},
                {"data_shape", kShape, nullptr, "Channels, height and width of an image in a batch."},
                {"preprocess_threads", kInt, "'4'", "Threads that decode images."},
                {"verbose", kFlag, "1", "Taken and not used: nothing is printed."}},
               part_params(),
               {{"device_id", kInt, "'0'", "The device that decodes images."},
                {"shuffle_chunk_size", kLong, "0", "MiB that are read and shuffled together."},
                {"shuffle_chunk_seed", kInt, "'0'", "Seed of that."},
                {"seed_aug", "int or None", "'None'", "Seed of random changes of images."}},
               record_shuffle_params(),
               batch_params(),
               prefetch_params()});
}

Params image_change_params() {
  return {{"resize", kInt, "'-1'", "Length of the shorter edge to which an image is scaled first; -1: as it is."},
          {"rand_crop", kFlag, "0", "Whether the place of the crop is random; else it is the centre."},
          {"random_resized_crop", kFlag, "0", "Whether size and aspect ratio of the crop are random, too."},
          {"max_rotate_angle", kInt, "'0'", "Images are turned by a random angle of at most so many degrees."},
          {"max_aspect_ratio", kFloat, "0", "Largest aspect ratio of a random crop, or largest change of it."},
          {"min_aspect_ratio", "float or None", "None", "Least aspect ratio of a random crop."},
          {"max_shear_ratio", kFloat, "0", "Largest random shear."},
          {"max_crop_size", kInt, "'-1'", "Largest edge of a random crop; -1: that of the data shape."},
          {"min_crop_size", kInt, "'-1'", "Least edge of a random crop."},
          {"max_random_scale", kFloat, "1", "Largest random scale."},
          {"min_random_scale", kFloat, "1", "Least random scale."},
          {"max_random_area", kFloat, "1", "Largest part of the image's area in a random crop."},
          {"min_random_area", kFloat, "1", "Least part of the image's area in a random crop."},
          {"max_img_size", kFloat, "1e+10", "Largest edge of a scaled image."},
          {"min_img_size", kFloat, "0", "Least edge of a scaled image."},
          {"brightness", kFloat, "0", "Largest random change of brightness."},
          {"contrast", kFloat, "0", "Largest random change of contrast."},
          {"saturation", kFloat, "0", "Largest random change of saturation."},
          {"pca_noise", kFloat, "0", "Deviation of random noise along the principal colours."},
          {"random_h", kInt, "'0'", "Largest random change of hue."},
          {"random_s", kInt, "'0'", "Largest random change of saturation in HLS."},
          {"random_l", kInt, "'0'", "Largest random change of lightness in HLS."},
          {"rotate", kInt, "'-1'", "An angle that all images are turned by; -1: none."},
          {"fill_value", kInt, "'255'", "Value of pixels outside the image."},
          {"data_shape", kShape, nullptr, "Channels, height and width of an image in a batch."},
          {"inter_method", kInt, "'1'", "How images are scaled: 0 nearest, 1 bilinear, 2 cubic, 3 area, 4 Lanczos."},
          {"pad", kInt, "'0'", "Pixels that are added at each edge."}};
}

Params mean_params(const char *default_deviation) {
  return {{"mean_img", kText, "''", "A file with an image that is subtracted."},
          {"mean_r", kFloat, "0", "Mean of the red channel, which is subtracted."},
          {"mean_g", kFloat, "0", "Mean of the green channel."},
          {"mean_b", kFloat, "0", "Mean of the blue channel."},
          {"mean_a", kFloat, "0", "Mean of the alpha channel."},
          {"std_r", kFloat, default_deviation, "Deviation of the red channel, by which it is divided."},
          {"std_g", kFloat, default_deviation, "Deviation of the green channel."},
          {"std_b", kFloat, default_deviation, "Deviation of the blue channel."},
          {"std_a", kFloat, default_deviation, "Deviation of the alpha channel."},
          {"scale", kFloat, "1", "A factor on all values, after mean and deviation."}};
}

Params normalize_params() {
  return join({{{"seed", kInt, "'0'", "Seed of the random mirroring."},
                {"mirror", kFlag, "0", "Whether images are mirrored."},
                {"rand_mirror", kFlag, "0", "Whether every other image is mirrored, at random."}},
               mean_params("1"),
               {{"max_random_contrast", kFloat, "0", "Largest random change of the factor."},
                {"max_random_illumination", kFloat, "0", "Largest random number that is added."},
                {"verbose", kFlag, "1", "Taken and not used: nothing is printed."}}});
}

Params detection_params() {
  return join(
      {{{"path_imglist", kText, "''", "A list of labels that replace those of the records."},
        {"path_imgrec", kText, "'./data/imgrec.rec'", "The RecordIO file."},
        {"aug_seq", kText, "'det_aug_default'", "Names of the changes that are made to an image, in order."},
        {"label_width", kInt, "'-1'", "Numbers in a label; -1: any number."},
        {"data_shape", kShape, nullptr, "Channels, height and width of an image in a batch."},
        {"preprocess_threads", kInt, "'4'", "Threads that decode images."},
        {"verbose", kFlag, "1", "Taken and not used: nothing is printed."}},
       part_params(),
       {{"shuffle_chunk_size", kLong, "0", "MiB that are read and shuffled together."},
        {"shuffle_chunk_seed", kInt, "'0'", "Seed of that."},
        {"label_pad_width", kInt, "'0'", "Length to which labels are filled up."},
        {"label_pad_value", kFloat, "-1", "What they are filled up with."}},
       record_shuffle_params(),
       batch_params(),
       prefetch_params(),
       {{"resize", kInt, "'-1'", "Length of the shorter edge to which an image is scaled first; -1: as it is."},
        {"rand_crop_prob", kFloat, "0", "How often an image is cropped."},
        {"min_crop_scales", kFloats, "[0]", "Least scale of a crop, for each sampler."},
        {"max_crop_scales", kFloats, "[1]", "Largest scale of a crop."},
        {"min_crop_aspect_ratios", kFloats, "[1]", "Least aspect ratio of a crop."},
        {"max_crop_aspect_ratios", kFloats, "[1]", "Largest aspect ratio of a crop."},
        {"min_crop_overlaps", kFloats, "[0]", "Least overlap of a crop with an object."},
        {"max_crop_overlaps", kFloats, "[1]", "Largest overlap of a crop with an object."},
        {"min_crop_sample_coverages", kFloats, "[0]", "Least part of a crop that an object covers."},
        {"max_crop_sample_coverages", kFloats, "[1]", "Largest part of a crop that an object covers."},
        {"min_crop_object_coverages", kFloats, "[0]", "Least part of an object in a crop."},
        {"max_crop_object_coverages", kFloats, "[1]", "Largest part of an object in a crop."},
        {"num_crop_sampler", kInt, "'1'", "The number of samplers."},
        {"crop_emit_mode", "{'center', 'overlap'}", "'center'", "Which objects stay in a crop."},
        {"emit_overlap_thresh", kFloat, "0.300000012", "Least overlap of an object that stays."},
        {"max_crop_trials", kShape, "[25]", "How often each sampler tries."},
        {"rand_pad_prob", kFloat, "0", "How often an image is enlarged by a margin."},
        {"max_pad_scale", kFloat, "1", "Largest scale of that."},
        {"max_random_hue", kInt, "'0'", "Largest random change of hue."},
        {"random_hue_prob", kFloat, "0", "How often hue changes."},
        {"max_random_saturation", kInt, "'0'", "Largest random change of saturation."},
        {"random_saturation_prob", kFloat, "0", "How often saturation changes."},
        {"max_random_illumination", kInt, "'0'", "Largest random number that is added."},
        {"random_illumination_prob", kFloat, "0", "How often it is added."},
        {"max_random_contrast", kFloat, "0", "Largest random change of contrast."},
        {"random_contrast_prob", kFloat, "0", "How often contrast changes."},
        {"rand_mirror_prob", kFloat, "0", "How often an image is mirrored."},
        {"fill_value", kInt, "'127'", "Value of pixels outside the image."},
        {"inter_method", kInt, "'1'", "How images are scaled: 0 nearest, 1 bilinear, 2 cubic, 3 area, 4 Lanczos."},
        {"data_shape", kShape, nullptr, "Channels, height and width of an image in a batch."},
        {"resize_mode", "{'fit', 'force', 'shrink'}", "'force'", "How an image gets the size of the data shape."},
        {"seed", kInt, "'0'", "Seed of the random changes."}},
       mean_params("0"),
       {{"verbose", kFlag, "1", "Taken and not used: nothing is printed."}}});
}

}  // namespace

const std::vector<IterKind> &iter_kinds() {
  static const std::vector<IterKind> kinds{
      {"CSVIter", "Reads batches of rows from text files of numbers with commas between them.",
       join({{{"data_csv", kText, nullptr, "The file of the data."},
              {"data_shape", kShape, nullptr, "The shape of one row."},
              {"label_csv", kText, "'NULL'", "The file of the labels; NULL: all labels are 0."},
              {"label_shape", kShape, "[1]", "The shape of one label."}},
             batch_params(),
             prefetch_params()}),
       create_csv_iter},
      {"ImageDetRecordIter", "Reads batches of images with boxes from a RecordIO file.", detection_params(), nullptr},
      {"ImageRecordIter_v1", "Reads batches of images from a RecordIO file.",
       join({image_record_params(), image_change_params(), normalize_params()}), create_image_iter},
      {"ImageRecordUInt8Iter_v1", "Reads batches of images from a RecordIO file as bytes.",
       join({image_record_params(), image_change_params()}), create_uint8_image_iter},
      {"ImageRecordIter", "Reads batches of images from a RecordIO file.",
       join({image_record_params(), image_change_params(), normalize_params()}), create_image_iter},
      {"ImageRecordUInt8Iter", "Reads batches of images from a RecordIO file as bytes.",
       join({image_record_params(), image_change_params()}), create_uint8_image_iter},
      {"ImageRecordInt8Iter", "Reads batches of images from a RecordIO file as signed bytes.",
       join({image_record_params(), image_change_params()}), create_int8_image_iter},
      {"LibSVMIter", "Reads batches of sparse rows from text files.",
       join({{{"data_libsvm", kText, nullptr, "The file of the data."},
              {"data_shape", kShape, nullptr, "The shape of one row."},
              {"label_libsvm", kText, "'NULL'", "The file of the labels; NULL: they are in that of the data."},
              {"label_shape", kShape, "[1]", "The shape of one label."}},
             part_params(),
             batch_params(),
             prefetch_params()}),
       nullptr},
      {"MNISTIter", "Reads batches of images of digits from files in the format of the MNIST database.",
       join({{{"image", kText, "'./train-images-idx3-ubyte'", "The file of the images."},
              {"label", kText, "'./train-labels-idx1-ubyte'", "The file of the labels."},
              {"batch_size", kInt, "'128'", "Images of a batch."},
              {"shuffle", kFlag, "1", "Whether the order of the images is random."},
              {"flat", kFlag, "0", "Whether an image has one axis instead of three."},
              {"seed", kInt, "'0'", "Seed of the random order."},
              {"silent", kFlag, "0", "Taken and not used: nothing is printed."}},
             part_params(),
             prefetch_params()}),
       create_mnist_iter},
  };
  return kinds;
}

}  // namespace cohort_mxnet
