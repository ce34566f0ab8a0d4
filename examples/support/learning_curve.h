/* SPDX-License-Identifier: Apache-2.0 */
/* Draws the course of a training as an SVG with two panels: loss and accuracy over the epochs. No part of Cohort. */
#ifndef LEARNING_CURVE_H
#define LEARNING_CURVE_H

typedef struct epoch_figures {
  double train_loss, train_accuracy;
  double test_loss, test_accuracy;
} epoch_figures;

/* Returns 0, or -1 if the file cannot be written. num_epochs is at least 1. */
int draw_learning_curve(const char *path, const char *title, const char *subtitle, const epoch_figures *epochs,
                        int num_epochs);

#endif /* LEARNING_CURVE_H */
