//! The route and the rights of a link's clients, which a gate states to the server in their `Hello`.

use std::net::SocketAddr;

use junctura_model::{Code, Error, Result};
use junctura_wire::body::Hello;
use junctura_wire::rights::AccessRights;

use crate::TokenClaims;

/// The origin of a link's clients.
#[derive(Clone, Debug)]
pub(crate) struct LinkOrigin {
    peer: SocketAddr,
    is_secret: bool,
    /// The token that they have shown; `None`: the gate asks for none.
    pub(crate) token: Option<TokenClaims>,
}

impl LinkOrigin {
    pub(crate) fn new(peer: SocketAddr, is_secret: bool) -> Self {
        Self {
            peer,
            is_secret,
            token: None,
        }
    }

    pub(crate) fn has_all_rights(&self) -> bool {
        self.token
            .as_ref()
            .is_none_or(|token| token.rights == AccessRights::ALL)
    }

    /// States in a client's greeting what the client itself must not decide. Rights that another gate on the way has stated can
    /// only become fewer.
    ///
    /// # Errors
    /// `Protocol` for rights that are none; `Denied` where none are left.
    pub(crate) fn state_in(&self, hello: &mut Hello<'_>) -> Result<()> {
        hello.route = Some(self.route().into());
        let Some(token) = &self.token else { return Ok(()) };
        let stated = hello.rights.map_or(Some(AccessRights::ALL), AccessRights::from_bits);
        let stated = stated.ok_or_else(|| Error::new(Code::Protocol, "Hello", "it states rights that do not exist"))?;
        let rights = stated.and(token.rights).ok_or_else(|| {
            let cause = format!("its client has the rights {stated}, and its link {}", token.rights);
            Error::new(Code::Denied, "token", cause)
        })?;
        hello.rights = Some(rights.bits());
        hello.token = Some(token.id);
        Ok(())
    }

    /// The way, for people.
    fn route(&self) -> String {
        let tls = if self.is_secret { ", TLS" } else { "" };
        let token = self.token.as_ref().map(|token| {
            let TokenClaims { id, rights, name, .. } = token;
            format!(", token {id:08x} ({rights}) of {name}")
        });
        format!("tcp{tls} from {}{}", self.peer, token.unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn origin(rights: &str) -> LinkOrigin {
        let token = TokenClaims {
            id: 0x1a,
            rights: rights.parse().unwrap(),
            from: 0,
            until: 1,
            name: "viewer".to_owned(),
        };
        LinkOrigin {
            token: Some(token),
            ..LinkOrigin::new("127.0.0.1:7".parse().unwrap(), true)
        }
    }

    fn stated(origin: &LinkOrigin, by_client: Option<u8>) -> Result<Option<u8>> {
        let mut hello = Hello {
            route: Some("mine".into()),
            rights: by_client,
            token: Some(5),
            ..Hello::default()
        };
        origin.state_in(&mut hello)?;
        assert!(hello.route.unwrap().starts_with("tcp"));
        assert_eq!(hello.token, Some(origin.token.as_ref().map_or(5, |token| token.id)));
        Ok(hello.rights)
    }

    #[test]
    fn a_client_cannot_state_more_than_its_token_grants() {
        for by_client in [None, Some(7), Some(1)] {
            assert_eq!(stated(&origin("read"), by_client), Ok(Some(1)));
        }
        assert_eq!(stated(&origin("admin"), Some(3)), Ok(Some(3)));
        assert_eq!(stated(&origin("offer"), Some(1)).unwrap_err().code(), Code::Denied);
        assert_eq!(stated(&origin("offer"), Some(200)).unwrap_err().code(), Code::Protocol);
    }

    #[test]
    fn where_no_token_is_asked_for_nothing_is_stated_of_rights() {
        let open = LinkOrigin::new("127.0.0.1:7".parse().unwrap(), false);
        assert_eq!(stated(&open, None), Ok(None));
        assert!(open.has_all_rights() && origin("admin").has_all_rights() && !origin("read,offer").has_all_rights());
    }

    #[test]
    fn the_way_names_the_token_and_not_its_text() {
        let text = origin("read,offer").route();
        assert_eq!(text, "tcp, TLS from 127.0.0.1:7, token 0000001a (read,offer) of viewer");
    }
}
