//! Numbers as Kubernetes stores them.

use serde_json::Value;

/// Writes whole numbers without a fraction or exponent: `1.0` and `1e0` become `1`, in place. Go reads them as float64, and writes these so.
pub fn whole_numbers(value: &mut Value) {
    match value {
        Value::Number(number) if number.is_f64() => {
            if let Some(whole) = number.as_f64().and_then(whole) {
                *number = whole.into();
            }
        }
        Value::Array(items) => items.iter_mut().for_each(whole_numbers),
        Value::Object(map) => map.values_mut().for_each(whole_numbers),
        _ => {}
    }
}

fn whole(number: f64) -> Option<i64> {
    // Text has no limit that a conversion could miss.
    if number.fract() != 0.0 || number.abs() >= 1e15 {
        return None;
    }
    format!("{number:.0}").parse().ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn fractions_of_nothing_go() {
        let mut value = json!({"a": [1.0, -2.0, 1.5, 1e3, 0.0, -0.0], "b": {"c": 1e30}, "d": 7});
        whole_numbers(&mut value);
        let text = r#"{"a":[1,-2,1.5,1000,0,0],"b":{"c":1e+30},"d":7}"#;
        assert_eq!(value.to_string(), text);
    }
}
