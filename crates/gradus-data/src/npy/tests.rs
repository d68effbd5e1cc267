use super::*;
use proptest::prelude::*;

#[rustfmt::skip]
pub(crate) mod fixtures;
use fixtures::*;

fn read<T: NpyValue>(bytes: &[u8]) -> NpyArray<T> {
    NpyArray::from_bytes(bytes).unwrap()
}

#[test]
fn what_numpy_wrote_is_read() {
    let matrix = [1.5, -2.0, 3.0, 4.0, 5.0, 6.0];
    for bytes in [F8_2X3, F8_2X3_FORTRAN, F4_BIG_ENDIAN] {
        assert_eq!(read::<f64>(bytes), NpyArray::new(vec![2, 3], matrix.into()).unwrap());
    }
    assert_eq!(read::<f32>(I4_BIG_ENDIAN).values(), [1.0, -2.0, 3.0, 4.0, 5.0, 60_000.0]);
    assert_eq!(read::<i64>(I8_EXTREME).values(), [i64::MIN, i64::MAX]);
    assert_eq!(read::<i64>(I8_PLAIN).values(), [7, -7, 123_456_789_012_345]);
    assert_eq!(read::<f64>(U8_EXTREME).values(), [u64::MAX as f64]);
    assert_eq!(read::<i64>(I2).values(), [-300, 300]);
    assert_eq!(read::<i64>(U2).values(), [60_000]);
    assert_eq!(read::<i64>(U1).values(), [0, 255]);
    assert_eq!(read::<i64>(I1).values(), [-128, 127]);
    assert_eq!(read::<f32>(BOOL).values(), [1.0, 0.0, 1.0]);
    assert_eq!(read::<f64>(VERSION_2).values(), [1.0]);
    assert_eq!(read::<f64>(VERSION_3).values(), [1.0]);
    let scalar = read::<f64>(SCALAR);
    assert_eq!((scalar.shape(), scalar.values()), (&[][..], &[3.25][..]));
    assert_eq!(read::<f64>(EMPTY).into_dense().unwrap().shape(), (0, 4));
    let cube = read::<i64>(CUBE_FORTRAN);
    assert_eq!(cube.shape(), [2, 3, 4]);
    assert_eq!(cube.values(), (0..24).collect::<Vec<_>>());
    assert!(cube.into_dense().unwrap_err().to_string().contains("shape [2, 3, 4]"));
    let half = read::<f64>(F2_SPECIAL);
    assert_eq!(half.values()[..3], [1.5, 0.0, 65504.0]);
    assert!(half.values()[1].is_sign_negative());
    assert!((half.values()[3] - 5.960_464_477_539_063e-8).abs() < 1e-20);
    assert_eq!(half.values()[4..6], [f64::INFINITY, f64::NEG_INFINITY]);
    assert!(half.values()[6].is_nan());
}

#[test]
fn what_is_written_is_byte_for_byte_what_numpy_writes() {
    for bytes in [F8_2X3, SCALAR, EMPTY] {
        let mut written = Vec::new();
        read::<f64>(bytes).to_writer(&mut written).unwrap();
        assert_eq!(written, bytes);
    }
    let mut written = Vec::new();
    read::<i64>(I8_PLAIN).to_writer(&mut written).unwrap();
    assert_eq!(written, I8_PLAIN);
}

#[test]
fn what_is_not_an_array_of_numbers_is_refused_with_the_reason() {
    let refusal = |bytes: &[u8]| NpyArray::<f64>::from_bytes(bytes).unwrap_err().to_string();
    assert!(refusal(TEXT).contains("type `<U2`"));
    assert!(refusal(COMPLEX).contains("type `<c16`"));
    assert!(refusal(STRUCTURED).contains("structured"));
    assert!(refusal(b"\x93NUMPZ\x01\x00").contains("mark of a NumPy array"));
    assert!(refusal(b"").contains("ends within the header"));
    assert!(refusal(&F8_2X3[..F8_2X3.len() - 1]).contains("ends within the values"));
    assert!(refusal(b"\x93NUMPY\x09\x00\x00\x00").contains("version 9"));
    assert!(refusal(b"\x93NUMPY\x02\x00\xff\xff\xff\xff").contains("4294967295 bytes"));
    let not_integers = NpyArray::<i64>::from_bytes(F8_2X3).unwrap_err().to_string();
    assert!(not_integers.contains("value 0 (from 0) does not fit"), "{not_integers}");
    assert!(NpyArray::<i64>::from_bytes(U8_EXTREME).is_err());
}

fn with_header(dictionary: &str) -> Vec<u8> {
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((dictionary.len() as u16).to_le_bytes());
    bytes.extend(dictionary.as_bytes());
    bytes.extend([0; 16]);
    bytes
}

#[test]
fn a_header_that_promises_too_much_costs_nothing() {
    for shape in [
        "(4611686018427387904,)",
        "(4611686018427387904, 4611686018427387904)",
        "(18446744073709551615, 0)",
        "(99999999999999999999999,)",
        "(1000000000000,)",
        "(1,) * 9",
        "(-1,)",
        "5",
        "(1,2",
    ] {
        for order in ["False", "True"] {
            let header =
                format!("{{'descr': '<f8', 'fortran_order': {order}, 'shape': {shape}, }}");
            assert!(NpyArray::<f64>::from_bytes(&with_header(&header)).is_err(), "{shape}");
        }
    }
    for header in
        ["", "{}", "{'descr': '<f8'", "[]", "{'descr': '|f8', 'fortran_order': False, 'shape': ()}"]
    {
        assert!(NpyArray::<f64>::from_bytes(&with_header(header)).is_err(), "{header}");
    }
    let odd = "  {\"shape\" :(2L ,) ,'fortran_order':False,'descr':'<f8'}\n";
    assert_eq!(read::<f64>(&with_header(odd)).values(), [0.0, 0.0]);
}

#[test]
fn no_change_of_bytes_makes_it_panic() {
    let mut stream = gradus_base::random::Stream::new(1, "mutate npy", 0);
    for fixture in [F8_2X3, I4_BIG_ENDIAN, CUBE_FORTRAN, F2_SPECIAL, VERSION_2] {
        for _ in 0..4000 {
            let mut bytes = fixture.to_vec();
            for _ in 0..1 + stream.index(4) {
                let at = stream.index(bytes.len());
                match stream.index(4) {
                    0 => bytes[at] = stream.next_u64() as u8,
                    1 => bytes[at] ^= 1 << stream.index(8),
                    2 => bytes.truncate(at.max(1)),
                    _ => bytes.insert(at, b"0123456789(),'"[stream.index(14)]),
                }
            }
            if let Ok(array) = NpyArray::<f64>::from_bytes(&bytes) {
                assert!(array.values().len() <= bytes.len());
            }
            let _ = NpyArray::<i64>::from_bytes(&bytes);
        }
    }
}

#[test]
fn files_round_trip_compressed_or_not() {
    let folder = tempfile::tempdir().unwrap();
    let array = read::<f64>(F8_2X3);
    for name in ["x.npy", "x.npy.gz", "x.npy.zst"] {
        let path = folder.path().join(name);
        array.write(&path).unwrap();
        assert_eq!(NpyArray::read(&path).unwrap(), array);
    }
    let path = folder.path().join("two.npy");
    std::fs::write(&path, [F8_2X3, F8_2X3].concat()).unwrap();
    let message = NpyArray::<f64>::read(&path).unwrap_err().to_string();
    assert!(message.contains("two.npy") && message.contains("more after"), "{message}");
}

proptest! {
    #[test]
    fn any_array_round_trips(shape in prop::collection::vec(0usize..5, 0..5), seed in any::<u64>()) {
        let n = shape.iter().product();
        let mut stream = gradus_base::random::Stream::new(seed, "values", 0);
        let values: Vec<f32> = (0..n).map(|_| stream.normal() as f32).collect();
        let array = NpyArray::new(shape, values).unwrap();
        let mut bytes = Vec::new();
        array.to_writer(&mut bytes).unwrap();
        prop_assert_eq!(NpyArray::<f32>::from_bytes(&bytes).unwrap(), array);
    }
}
