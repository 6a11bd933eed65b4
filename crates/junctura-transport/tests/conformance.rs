//! Sockets and rings do what every carrier must, between two ends of a pair and through a listener.

mod pair {
    use junctura_transport::{UnixCarrier, conformance_tests};

    conformance_tests!(UnixCarrier::pair().unwrap(), in one stream);
}

mod rings {
    use junctura_transport::{LocalCarrier, conformance_tests};

    conformance_tests!(LocalCarrier::pair().unwrap());
}

mod listener {
    use junctura_transport::{ServerListener, UnixCarrier, conformance_tests};

    fn open() -> (UnixCarrier, UnixCarrier) {
        let room = tempfile::tempdir().unwrap();
        let address = format!("unix:{}/pool.sock", room.path().display()).parse().unwrap();
        let mut listener = ServerListener::bind(&address).unwrap();
        let client = UnixCarrier::connect(&address).unwrap();
        (client, listener.accept().unwrap().unwrap())
    }

    conformance_tests!(open(), in one stream);
}
