//! A port that belongs to a simulated cluster, also while nothing answers on it.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};

use parking_lot::Mutex;
use tokio::net::{TcpListener, TcpSocket};

/// A port on the loopback interface. While nobody listens, connections are refused, as on a machine that is still booting.
#[derive(Debug)]
pub(crate) struct Reserved {
    port: u16,
    // Bound, not listening: nobody else can take the port meanwhile.
    socket: Mutex<Option<TcpSocket>>,
}

impl Reserved {
    /// Takes a port that was not ours before. Fails when another program has it, or had it a moment ago.
    pub(crate) fn take(port: u16) -> io::Result<Self> {
        Ok(Self::of(port, bound(port, false)?))
    }

    /// Takes a port that may have been ours before a restart. Fails when another program has it.
    pub(crate) fn bind(port: u16) -> io::Result<Self> {
        // Connections of the process before may still end, which only those who share take the port in spite of.
        let socket = bound(port, false).or_else(|_| bound(port, true))?;
        Ok(Self::of(port, socket))
    }

    fn of(port: u16, socket: TcpSocket) -> Self {
        Self {
            port,
            socket: Mutex::new(Some(socket)),
        }
    }

    /// The port.
    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// Listens on the port.
    pub(crate) fn listen(&self) -> io::Result<TcpListener> {
        let socket = match self.socket.lock().take() {
            Some(socket) => socket,
            None => bound(self.port, true)?,
        };
        // Its connections inherit this: while they end, we can take the port again.
        socket.set_reuseaddr(true)?;
        socket.listen(1024)
    }
}

/// Those who share may be bound to one port together until one of them listens.
fn bound(port: u16, share: bool) -> io::Result<TcpSocket> {
    let socket = TcpSocket::new_v4()?;
    socket.set_reuseaddr(share)?;
    socket.bind(SocketAddr::from((Ipv4Addr::LOCALHOST, port)))?;
    Ok(socket)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn free() -> u16 {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.local_addr().unwrap().port()
    }

    #[test]
    fn a_reserved_port_is_nobody_elses() {
        let reserved = Reserved::take(free()).unwrap();
        assert!(Reserved::take(reserved.port()).is_err());
        assert!(Reserved::bind(reserved.port()).is_err());
        let again = Reserved::bind(free()).unwrap();
        assert!(Reserved::take(again.port()).is_err());
    }

    #[tokio::test]
    async fn a_port_is_taken_again_while_its_connections_end() {
        let reserved = Reserved::take(free()).unwrap();
        let port = reserved.port();
        let listener = reserved.listen().unwrap();
        let client = tokio::net::TcpStream::connect(("127.0.0.1", port)).await.unwrap();
        // The side that closes first waits for stray packets.
        drop(listener.accept().await.unwrap());
        drop((client, listener, reserved));
        assert!(Reserved::bind(port).unwrap().listen().is_ok());
    }

    #[tokio::test]
    async fn a_reserved_port_refuses_until_somebody_listens() {
        let free = free();
        let reserved = Reserved::bind(free).unwrap();
        let refused = tokio::net::TcpStream::connect(("127.0.0.1", free)).await.unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::ConnectionRefused);
        let listener = reserved.listen().unwrap();
        assert!(tokio::net::TcpStream::connect(("127.0.0.1", free)).await.is_ok());
        drop(listener);
        assert!(reserved.listen().is_ok());
    }
}
