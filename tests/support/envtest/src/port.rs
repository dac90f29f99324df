//! Ports for programs that take a port number instead of a socket.

use std::net::SocketAddr;

use parking_lot::Mutex;
use tokio::net::TcpSocket;

/// The sockets of all reserved ports; they live as long as the process.
static HELD: Mutex<Vec<TcpSocket>> = Mutex::new(Vec::new());

/// A port of the loopback interface that the kernel assigns to no other process, and that has no listener yet.
///
/// A socket stays bound to it and never listens. As it allows its address to be reused, a program that asks for the port by
/// number may listen there. Until then, connections are refused.
pub fn reserved_port() -> std::io::Result<u16> {
    let socket = TcpSocket::new_v4()?;
    socket.set_reuseaddr(true)?;
    socket.bind(SocketAddr::from(([127, 0, 0, 1], 0)))?;
    let port = socket.local_addr()?.port();
    HELD.lock().push(socket);
    Ok(port)
}

#[cfg(test)]
mod tests {
    use std::io::ErrorKind;
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn a_reserved_port_is_refused_until_a_program_listens_on_it() {
        let port = reserved_port().unwrap();
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        assert_eq!(
            TcpStream::connect(address).unwrap_err().kind(),
            ErrorKind::ConnectionRefused
        );
        let listener = TcpListener::bind(address).unwrap();
        TcpStream::connect(address).unwrap();
        drop(listener);
        assert_ne!(reserved_port().unwrap(), port);
        TcpListener::bind(address).unwrap();
    }
}
