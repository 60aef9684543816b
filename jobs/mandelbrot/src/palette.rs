//! Colours: a smooth escape count in, linear light out; linear light in, sRGB bytes out.
//!
//! Samples are averaged in linear light, else fine filaments come out too dark.

/// Red, green and blue in linear light, each from 0 to 1.
pub(crate) type Light = [f64; 3];

/// What belongs to the set itself.
pub(crate) const INSIDE: Light = [0.0, 0.0, 0.0];

/// The gradient: positions from 0 to 1 and sRGB colours there; it is periodic.
const STOPS: [(f64, [f64; 3]); 6] = [
    (0.0, [0.0, 7.0, 100.0]),
    (0.16, [32.0, 107.0, 203.0]),
    (0.42, [237.0, 255.0, 255.0]),
    (0.6425, [255.0, 170.0, 0.0]),
    (0.8575, [60.0, 12.0, 10.0]),
    (1.0, [0.0, 7.0, 100.0]),
];

/// Turns of the gradient for each doubling of the escape count.
const TURNS_PER_DOUBLING: f64 = 0.75;

/// Shifts the gradient, so that the default view starts in its blues.
const PHASE: f64 = 0.30;

/// The colour of a point that escaped after `count` iterations (fractional, more than 0).
pub(crate) fn outside(count: f64) -> Light {
    let at = (count.max(1.0).log2() * TURNS_PER_DOUBLING + PHASE).fract();
    for pair in STOPS.windows(2) {
        let ((from, a), (to, b)) = (pair[0], pair[1]);
        if at <= to {
            let t = (at - from) / (to - from);
            let eased = t * t * (3.0 - 2.0 * t);
            return [0, 1, 2].map(|c| linear((a[c] + (b[c] - a[c]) * eased) / 255.0));
        }
    }
    STOPS[0].1.map(|channel| linear(channel / 255.0))
}

/// sRGB to linear light.
fn linear(encoded: f64) -> f64 {
    if encoded <= 0.040_45 { encoded / 12.92 } else { ((encoded + 0.055) / 1.055).powf(2.4) }
}

/// Linear light to an sRGB byte.
pub(crate) fn byte(light: f64) -> u8 {
    let light = light.clamp(0.0, 1.0);
    let encoded =
        if light <= 0.003_130_8 { light * 12.92 } else { 1.055 * light.powf(1.0 / 2.4) - 0.055 };
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the value is between 0 and 255 after the clamp"
    )]
    let byte = (encoded * 255.0).round() as u8;
    byte
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn linear_light_and_bytes_are_inverse() {
        for value in 0..=255_u8 {
            assert_eq!(byte(linear(f64::from(value) / 255.0)), value);
        }
    }

    #[test]
    fn light_beyond_its_range_is_cut() {
        assert_eq!((byte(-1.0), byte(2.0)), (0, 255));
    }

    #[test]
    fn the_gradient_is_continuous_over_its_seam() {
        let count = |turns: f64| ((turns - PHASE) / TURNS_PER_DOUBLING).exp2();
        let (before, after) = (outside(count(7.999_99)), outside(count(8.000_01)));
        for c in 0..3 {
            assert!((before[c] - after[c]).abs() < 1e-3, "channel {c}");
        }
    }
}
