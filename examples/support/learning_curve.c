/* SPDX-License-Identifier: Apache-2.0 */
#include "learning_curve.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>

#define TRAIN_COLOUR "#3b6fb6"
#define TEST_COLOUR "#d9622b"

enum { WIDTH = 940, HEIGHT = 400, PANEL_WIDTH = 370, PANEL_HEIGHT = 240, PANEL_TOP = 96, MAX_TICKS = 32 };

/* One panel: its position on the page, and the ranges of its axes. */
typedef struct panel {
  double left;
  int num_epochs;
  int logarithmic; /* the vertical axis, from the first tick to the last */
  int num_ticks;
  double ticks[MAX_TICKS];
} panel;

static double x_of(const panel *p, double epoch) {
  const double span = p->num_epochs > 1 ? p->num_epochs - 1 : 1;
  return p->left + (epoch - 1) / span * PANEL_WIDTH;
}

/* Values outside the axis are drawn at its end, NaN at the top. */
static double y_of(const panel *p, double value) {
  const double low = p->ticks[0], high = p->ticks[p->num_ticks - 1];
  double share = p->logarithmic ? log(fmax(value, low) / low) / log(high / low) : (value - low) / (high - low);

  if (!(share <= 1)) share = 1;
  return PANEL_TOP + (1 - fmax(share, 0)) * PANEL_HEIGHT;
}

/* The distance between ticks: 1, 2 or 5 times a power of ten, so that about `wanted` of them fit in the span. */
static double tick_step(double span, int wanted) {
  const double raw = span / wanted, power = pow(10, floor(log10(raw))), lead = raw / power;
  return power * (lead <= 1.0001 ? 1 : lead <= 2.0001 ? 2 : lead <= 5.0001 ? 5 : 10);
}

static double value_of(const epoch_figures *epoch, size_t offset) {
  return *(const double *)((const char *)epoch + offset);
}

static void draw_epoch(FILE *out, const panel *p, int epoch) {
  const double x = x_of(p, epoch), bottom = PANEL_TOP + PANEL_HEIGHT;

  fprintf(out, "<path class=\"axis\" d=\"M%.1f %.1fv5\"/>\n", x, bottom);
  fprintf(out, "<text class=\"tick\" text-anchor=\"middle\" x=\"%.1f\" y=\"%.1f\">%d</text>\n", x, bottom + 20, epoch);
}

static void draw_axes(FILE *out, const panel *p, const char *title) {
  const double bottom = PANEL_TOP + PANEL_HEIGHT;
  const int epoch_step = (int)fmax(1, tick_step(p->num_epochs, 6));
  int i;

  fprintf(out, "<text class=\"panel\" x=\"%.1f\" y=\"%d\">%s</text>\n", p->left, PANEL_TOP - 14, title);
  for (i = 0; i < p->num_ticks; ++i) {
    const double y = y_of(p, p->ticks[i]);

    fprintf(out, "<path class=\"grid\" d=\"M%.1f %.1fh%d\"/>\n", p->left, y, PANEL_WIDTH);
    fprintf(out, "<text class=\"tick\" text-anchor=\"end\" x=\"%.1f\" y=\"%.1f\">%.4g</text>\n", p->left - 9, y + 4,
            p->ticks[i]);
  }
  draw_epoch(out, p, 1);
  for (i = epoch_step; i <= p->num_epochs; i += epoch_step)
    if (i > 1) draw_epoch(out, p, i);
  fprintf(out, "<path class=\"axis\" d=\"M%.1f %.1fh%d\"/>\n", p->left, bottom, PANEL_WIDTH);
  fprintf(out, "<text class=\"tick\" text-anchor=\"middle\" x=\"%.1f\" y=\"%.1f\">epoch</text>\n",
          p->left + PANEL_WIDTH / 2.0, bottom + 42);
}

static void draw_line(FILE *out, const panel *p, const epoch_figures *epochs, size_t offset, const char *colour) {
  const int last = p->num_epochs - 1;
  int i;

  fprintf(out, "<path class=\"line\" stroke=\"%s\" d=\"", colour);
  for (i = 0; i <= last; ++i)
    fprintf(out, "%c%.1f %.1f", i ? 'L' : 'M', x_of(p, i + 1), y_of(p, value_of(&epochs[i], offset)));
  fputs("\"/>\n", out);
  fprintf(out, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3.5\" fill=\"%s\"/>\n", x_of(p, last + 1),
          y_of(p, value_of(&epochs[last], offset)), colour);
}

static void draw_legend(FILE *out, double right, double y) {
  const char *const names[] = {"training", "test"}, *const colours[] = {TRAIN_COLOUR, TEST_COLOUR};
  int i;

  for (i = 0; i < 2; ++i) {
    const double x = right - 150 + i * 92;

    fprintf(out, "<path class=\"line\" stroke=\"%s\" d=\"M%.1f %.1fh22\"/>\n", colours[i], x, y - 4);
    fprintf(out, "<text class=\"tick\" x=\"%.1f\" y=\"%.1f\">%s</text>\n", x + 28, y, names[i]);
  }
}

/* The range of one figure in training and test, over its finite values. */
static void find_range(const epoch_figures *epochs, int num_epochs, size_t train, size_t test, double *low,
                       double *high) {
  int i;

  *low = HUGE_VAL;
  *high = -HUGE_VAL;
  for (i = 0; i < 2 * num_epochs; ++i) {
    const double value = value_of(&epochs[i / 2], i % 2 ? train : test);

    if (!isfinite(value)) continue;
    *low = fmin(*low, value);
    *high = fmax(*high, value);
  }
}

/* Logarithmic: 1, 2, 5 times the powers of ten that span all losses, or the powers alone if there are many. */
static panel loss_panel(const epoch_figures *epochs, int num_epochs) {
  static const double leads[] = {1, 2, 5};
  panel p = {70, num_epochs, 1, 0, {0}};
  double low, high;
  int exponent, step, i;

  find_range(epochs, num_epochs, offsetof(epoch_figures, train_loss), offsetof(epoch_figures, test_loss), &low, &high);
  if (!(high > 1e-6 && high < 1e12)) high = 1;
  if (!(low > 1e-6)) low = 1e-6;
  step = high / low > 1000 ? 3 : 1;
  for (exponent = (int)floor(log10(low)); p.num_ticks < MAX_TICKS; ++exponent) {
    for (i = 0; i < 3 && p.num_ticks < MAX_TICKS; i += step) {
      const double tick = leads[i] * pow(10, exponent);

      if (p.num_ticks == 1 && tick <= low) p.num_ticks = 0; /* a nearer one below the lowest */
      p.ticks[p.num_ticks++] = tick;
      if (p.num_ticks > 1 && tick >= high) return p;
    }
  }
  return p;
}

/* From a tick below the smallest accuracy to 1. */
static panel accuracy_panel(const epoch_figures *epochs, int num_epochs) {
  panel p = {530, num_epochs, 0, 0, {0}};
  double low, high, step;
  int i;

  find_range(epochs, num_epochs, offsetof(epoch_figures, train_accuracy), offsetof(epoch_figures, test_accuracy), &low,
             &high);
  if (!(low < 0.99)) low = 0.99;
  step = tick_step(1 - low, 5);
  p.num_ticks = 1 + (int)ceil((1 - low) / step - 0.0001);
  for (i = 0; i < p.num_ticks; ++i) p.ticks[i] = fmax(0, 1 - (p.num_ticks - 1 - i) * step);
  return p;
}

int draw_learning_curve(const char *path, const char *title, const char *subtitle, const epoch_figures *epochs,
                        int num_epochs) {
  const panel loss = loss_panel(epochs, num_epochs), accuracy = accuracy_panel(epochs, num_epochs);
  FILE *out = fopen(path, "w");
  int failed;

  if (!out) return -1;
  fprintf(out,
          "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\" height=\"%d\" "
          "font-family=\"'Helvetica Neue', Helvetica, Arial, 'DejaVu Sans', sans-serif\">\n",
          WIDTH, HEIGHT, WIDTH, HEIGHT);
  fputs(
      "<style>.title{font-size:19px;font-weight:600;fill:#1d232b}.sub{font-size:13px;fill:#66707c}"
      ".panel{font-size:14px;font-weight:600;fill:#38414c}.tick{font-size:12px;fill:#66707c}"
      ".grid{stroke:#e6e9ee;fill:none}.axis{stroke:#9aa4b1;fill:none}"
      ".line{fill:none;stroke-width:2.4;stroke-linejoin:round;stroke-linecap:round}</style>\n",
      out);
  fprintf(out, "<rect width=\"%d\" height=\"%d\" fill=\"#ffffff\"/>\n", WIDTH, HEIGHT);
  fprintf(out, "<text class=\"title\" x=\"%.1f\" y=\"34\">%s</text>\n", loss.left - 40, title);
  fprintf(out, "<text class=\"sub\" x=\"%.1f\" y=\"55\">%s</text>\n", loss.left - 40, subtitle);
  draw_legend(out, accuracy.left + PANEL_WIDTH, 34);

  draw_axes(out, &loss, "loss (cross entropy, logarithmic)");
  draw_line(out, &loss, epochs, offsetof(epoch_figures, train_loss), TRAIN_COLOUR);
  draw_line(out, &loss, epochs, offsetof(epoch_figures, test_loss), TEST_COLOUR);
  draw_axes(out, &accuracy, "accuracy");
  draw_line(out, &accuracy, epochs, offsetof(epoch_figures, train_accuracy), TRAIN_COLOUR);
  draw_line(out, &accuracy, epochs, offsetof(epoch_figures, test_accuracy), TEST_COLOUR);
  fputs("</svg>\n", out);

  failed = ferror(out);
  return fclose(out) || failed ? -1 : 0;
}
