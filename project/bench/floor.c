/* Forward-backward over sequences, what the recursions of a linear-chain CRF take by themselves
   (Lavergne 2010, section 2.2, with forward vectors that sum to one); and a whole gradient of all
   weights around it, with one matrix of pair potentials (equations 3 and 4).

   LABELS (Y) and PADDED (Yp, the next multiple of 8) are constants, so that the compiler unrolls.
   All matrices are row-major. Padding of `pairs` and `transposed` is zero, so that what stands in
   the padding of vectors never reaches a label. */

#include <math.h>
#include <stdint.h>
#include <string.h>

typedef double vector[PADDED];

/* exp(x) for x <= 0: 2^k times a polynomial on half of log 2 around zero; at least exp(-700). */
static inline double power(double x)
{
    x = x < -700.0 ? -700.0 : x;
    double k = __builtin_floor(x * 1.4426950408889634 + 0.5);
    double r = (x - k * 0.693147180369123816490) - k * 1.90821492927058770002e-10;
    double p = 2.5052108385441720e-8;
    p = p * r + 2.7557319223985893e-7;
    p = p * r + 2.7557319223985888e-6;
    p = p * r + 2.4801587301587302e-5;
    p = p * r + 1.9841269841269841e-4;
    p = p * r + 1.3888888888888889e-3;
    p = p * r + 8.3333333333333332e-3;
    p = p * r + 4.1666666666666664e-2;
    p = p * r + 1.6666666666666666e-1;
    p = p * r + 0.5;
    p = p * r + 1.0;
    p = p * r + 1.0;
    int64_t bits = ((int64_t)k + 1023) << 52;
    double scale;
    memcpy(&scale, &bits, sizeof scale);
    return p * scale;
}

/* out(y) = sum of v(i) matrix(i, y); two rows at a time, so that out is read half as often. */
static inline void product(const double *restrict v, const vector *restrict matrix,
                           double *restrict out)
{
    for (int y = 0; y < PADDED; y++)
        out[y] = LABELS % 2 ? v[LABELS - 1] * matrix[LABELS - 1][y] : 0.0;
    for (int i = 0; i + 1 < LABELS; i += 2)
        for (int y = 0; y < PADDED; y++)
            out[y] += v[i] * matrix[i][y] + v[i + 1] * matrix[i + 1][y];
}

/* exp(score - max) of the labels of a token; returns the maximum. */
static inline double observe(const double *restrict scores, double *restrict evidence)
{
    double most = scores[0];
    for (int y = 1; y < LABELS; y++)
        most = scores[y] > most ? scores[y] : most;
    for (int y = 0; y < PADDED; y++)
        evidence[y] = power(scores[y] - most);
    for (int y = LABELS; y < PADDED; y++)
        evidence[y] = 0.0;
    return most;
}

/* Normalises a forward vector, and divides the evidence by the same; returns the sum. */
static inline double normalise(double *restrict alpha, double *restrict evidence)
{
    double total = 0.0;
    for (int y = 0; y < PADDED; y++) {
        alpha[y] *= evidence[y];
        total += alpha[y];
    }
    double factor = 1.0 / total;
    for (int y = 0; y < PADDED; y++) {
        alpha[y] *= factor;
        evidence[y] *= factor;
    }
    return total;
}

static double forward(int length, const vector *restrict scores, const int32_t *restrict context,
                      const vector *restrict pairs, vector *restrict evidence,
                      vector *restrict alpha)
{
    double log_z = 0.0, scale = 1.0;
    for (int t = 0; t < length; t++) {
        log_z += observe(scores[t], evidence[t]);
        if (t)
            product(alpha[t - 1], pairs + (int64_t)context[t] * LABELS, alpha[t]);
        else
            for (int y = 0; y < PADDED; y++)
                alpha[0][y] = 1.0;
        scale *= normalise(alpha[t], evidence[t]);
        /* A logarithm a token would take a tenth of the time. */
        if (scale < 1e-100 || scale > 1e100) {
            log_z += log(scale);
            scale = 1.0;
        }
    }
    return log_z + log(scale);
}

static void backward(int length, const int32_t *restrict context,
                     const vector *restrict transposed, vector *restrict evidence,
                     const vector *restrict alpha, vector *restrict marginals)
{
    vector beta;
    for (int y = 0; y < PADDED; y++)
        beta[y] = 1.0;
    for (int t = length - 1; t >= 0; t--) {
        for (int y = 0; y < PADDED; y++) {
            marginals[t][y] = alpha[t][y] * beta[y];
            evidence[t][y] *= beta[y];
        }
        if (t)
            product(evidence[t], transposed + (int64_t)context[t] * LABELS, beta);
    }
}

/* offsets: [n + 1], tokens of each sequence; scores, evidence, alpha, marginals: [N, Yp]; context:
   [N], of the pair that ends at a token; pairs, transposed: [C, Y, Yp]; log_z: [n]. Marginals sum to
   one; evidence is left as the factors that pair marginals take. */
void forward_backward(int64_t n, const int64_t *offsets, const vector *scores,
                      const int32_t *context, const vector *pairs, const vector *transposed,
                      vector *evidence, vector *alpha, vector *marginals, double *log_z)
{
    for (int64_t s = 0; s < n; s++) {
        int64_t t = offsets[s];
        int length = (int)(offsets[s + 1] - t);
        log_z[s] = forward(length, scores + t, context + t, pairs, evidence + t, alpha + t);
        backward(length, context + t, transposed, evidence + t, alpha + t, marginals + t);
    }
}

/* Items ahead that are asked for, as hardware cannot foresee them. */
#define AHEAD 12

/* scores(t) = sum of the weights of a token's tests. ptr, tests: CSR, of tokens; theta: [O, Y]. */
void sum_weights(int64_t n, const int64_t *ptr, const int32_t *tests, const double *theta,
                 vector *restrict scores)
{
    for (int64_t t = 0; t < n; t++) {
        vector total = {0.0};
        for (int64_t j = ptr[t]; j < ptr[t + 1]; j++) {
            const double *own = theta + (int64_t)tests[j] * LABELS;
            if (j + AHEAD < ptr[n])
                for (int y = 0; y < LABELS; y += 8)
                    __builtin_prefetch(theta + (int64_t)tests[j + AHEAD] * LABELS + y);
            for (int y = 0; y < LABELS; y++)
                total[y] += own[y];
        }
        memcpy(scores[t], total, sizeof total);
    }
}

/* gradient(o) = sum of the residuals of a test's tokens. ptr, tokens: CSC; gradient: [O, Y]. */
void sum_residuals(int64_t n, const int64_t *ptr, const int32_t *tokens, const vector *residual,
                   double *restrict gradient)
{
    for (int64_t o = 0; o < n; o++) {
        vector total = {0.0};
        for (int64_t j = ptr[o]; j < ptr[o + 1]; j++) {
            if (j + AHEAD < ptr[n])
                for (int y = 0; y < PADDED; y += 8)
                    __builtin_prefetch(residual[tokens[j + AHEAD]] + y);
            for (int y = 0; y < PADDED; y++)
                total[y] += residual[tokens[j]][y];
        }
        memcpy(gradient + o * LABELS, total, LABELS * sizeof *total);
    }
}

/* total(i, y) = expected number of pairs. offsets, alpha, evidence, pairs: see above, one matrix. */
void sum_pairs(int64_t n, const int64_t *offsets, const vector *alpha, const vector *evidence,
               const vector *pairs, vector *restrict total)
{
    memset(total, 0, LABELS * sizeof *total);
    for (int64_t s = 0; s < n; s++)
        for (int64_t t = offsets[s] + 1; t < offsets[s + 1]; t++)
            for (int i = 0; i < LABELS; i++)
                for (int y = 0; y < PADDED; y++)
                    total[i][y] += alpha[t - 1][i] * evidence[t][y];
    for (int i = 0; i < LABELS; i++)
        for (int y = 0; y < PADDED; y++)
            total[i][y] *= pairs[i][y];
}

/* residual(t, gold label) -= 1. */
void subtract_gold(int64_t n, const int32_t *labels, vector *residual)
{
    for (int64_t t = 0; t < n; t++)
        residual[t][labels[t]] -= 1.0;
}
