//! An address that belongs to a simulated cluster, also while nothing answers on it.

use std::io;
use std::net::SocketAddr;

use parking_lot::Mutex;
use tokio::net::{TcpListener, TcpSocket};

/// An address of this host. While no program listens, connections are refused, as on a machine that is still booting.
#[derive(Debug)]
pub(crate) struct Reserved {
    address: SocketAddr,
    // Bound, not listening: no other program can take the port meanwhile.
    socket: Mutex<Option<TcpSocket>>,
}

impl Reserved {
    /// Takes a port that was not ours before. Fails when another program has it, or had it a moment ago.
    pub(crate) fn take(address: SocketAddr) -> io::Result<Self> {
        Self::of(bound(address, false)?)
    }

    /// Takes a port that may have been ours before a restart; port 0 is any. Fails when another program has it.
    pub(crate) fn bind(address: SocketAddr) -> io::Result<Self> {
        // Connections of the process before may still end, which only sockets that share a port ignore.
        Self::of(bound(address, false).or_else(|_| bound(address, true))?)
    }

    fn of(socket: TcpSocket) -> io::Result<Self> {
        Ok(Self {
            address: socket.local_addr()?,
            socket: Mutex::new(Some(socket)),
        })
    }

    /// The address.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Listens on the port.
    pub(crate) fn listen(&self) -> io::Result<TcpListener> {
        let socket = match self.socket.lock().take() {
            Some(socket) => socket,
            None => bound(self.address, true)?,
        };
        // Its connections inherit this: while they end, we can take the port again.
        socket.set_reuseaddr(true)?;
        socket.listen(1024)
    }

    /// Keeps the port after the listener is gone, for the next one.
    pub(crate) fn hold(&self) -> io::Result<()> {
        let mut socket = self.socket.lock();
        if socket.is_none() {
            *socket = Some(bound(self.address, false).or_else(|_| bound(self.address, true))?);
        }
        Ok(())
    }
}

/// Sockets that share may be bound to one port together until one of them listens.
fn bound(address: SocketAddr, share: bool) -> io::Result<TcpSocket> {
    let socket = if address.is_ipv4() {
        TcpSocket::new_v4()?
    } else {
        TcpSocket::new_v6()?
    };
    socket.set_reuseaddr(share)?;
    socket.bind(address)?;
    Ok(socket)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn free() -> SocketAddr {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.local_addr().unwrap()
    }

    async fn refuses(address: SocketAddr) -> bool {
        let answer = tokio::net::TcpStream::connect(address).await;
        answer.is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused)
    }

    #[test]
    fn a_reserved_port_cannot_be_taken_again() {
        let reserved = Reserved::take(free()).unwrap();
        assert!(Reserved::take(reserved.address()).is_err());
        assert!(Reserved::bind(reserved.address()).is_err());
        let again = Reserved::bind(free()).unwrap();
        assert!(Reserved::take(again.address()).is_err());
    }

    #[test]
    fn the_same_port_of_two_addresses_is_two_ports() {
        let one = Reserved::bind(free()).unwrap();
        let other: SocketAddr = ([127, 0, 0, 2], one.address().port()).into();
        assert!(Reserved::bind(other).is_ok());
    }

    #[tokio::test]
    async fn a_port_is_taken_again_while_its_connections_end() {
        let reserved = Reserved::take(free()).unwrap();
        let address = reserved.address();
        let listener = reserved.listen().unwrap();
        let client = tokio::net::TcpStream::connect(address).await.unwrap();
        // The side that closes first waits for stray packets.
        drop(listener.accept().await.unwrap());
        drop((client, listener, reserved));
        assert!(Reserved::bind(address).unwrap().listen().is_ok());
    }

    #[tokio::test]
    async fn a_reserved_port_refuses_until_a_program_listens() {
        let address = free();
        let reserved = Reserved::bind(address).unwrap();
        assert!(refuses(address).await);
        let listener = reserved.listen().unwrap();
        assert!(tokio::net::TcpStream::connect(address).await.is_ok());
        drop(listener);
        assert!(reserved.listen().is_ok());
    }

    #[tokio::test]
    async fn a_port_is_kept_between_two_listeners() {
        let reserved = Reserved::bind(free()).unwrap();
        drop(reserved.listen().unwrap());
        reserved.hold().unwrap();
        reserved.hold().unwrap();
        assert!(refuses(reserved.address()).await);
        assert!(Reserved::take(reserved.address()).is_err());
        assert!(reserved.listen().is_ok());
    }
}
