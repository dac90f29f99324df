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
    /// Takes the port. Fails when another program has it.
    pub(crate) fn bind(port: u16) -> io::Result<Self> {
        Ok(Self {
            port,
            socket: Mutex::new(Some(bound(port)?)),
        })
    }

    /// The port.
    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// Listens on the port.
    pub(crate) fn listen(&self) -> io::Result<TcpListener> {
        let socket = match self.socket.lock().take() {
            Some(socket) => socket,
            None => bound(self.port)?,
        };
        socket.listen(1024)
    }
}

fn bound(port: u16) -> io::Result<TcpSocket> {
    let socket = TcpSocket::new_v4()?;
    socket.set_reuseaddr(true)?;
    socket.bind(SocketAddr::from((Ipv4Addr::LOCALHOST, port)))?;
    Ok(socket)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_reserved_port_refuses_until_somebody_listens() {
        let free = std::net::TcpListener::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap()
            .port();
        let reserved = Reserved::bind(free).unwrap();
        let refused = tokio::net::TcpStream::connect(("127.0.0.1", free)).await.unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::ConnectionRefused);
        let listener = reserved.listen().unwrap();
        assert!(tokio::net::TcpStream::connect(("127.0.0.1", free)).await.is_ok());
        drop(listener);
        assert!(reserved.listen().is_ok());
    }
}
