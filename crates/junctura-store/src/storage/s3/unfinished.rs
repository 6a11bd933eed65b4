//! Unfinished multipart uploads: a killed process leaves them invisible in the bucket, where they cost money.
//!
//! The library does not list them. This module sends
//! [`ListMultipartUploads`](https://docs.aws.amazon.com/AmazonS3/latest/API/API_ListMultipartUploads.html) to the
//! library's address, with its credentials and signature.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use object_store::ClientOptions;
use object_store::aws::{AmazonS3, AwsAuthorizer};
use object_store::client::{HttpConnector, HttpRequest, HttpRequestBody, ReqwestConnector};
use object_store::multipart::MultipartStore;
use object_store::path::Path;
use object_store::signer::Signer;
use reqwest::{Method, StatusCode, Url};
use serde::Deserialize;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use super::{REQUEST_TIME_MAX, S3Disk, refused, runtime};
use crate::storage::UnfinishedFile;

/// Maximum size of a response: at most a thousand uploads, of some hundred bytes each.
const ANSWER_BYTES_MAX: usize = 4 << 20;
/// Before a question is asked again.
const PAUSES: [Duration; 3] = [
    Duration::from_millis(100),
    Duration::from_millis(400),
    Duration::from_millis(1600),
];
/// Status codes of a server that does not support the request, or does not permit it.
const UNANSWERED: [StatusCode; 5] = [
    StatusCode::FORBIDDEN,
    StatusCode::NOT_FOUND,
    StatusCode::METHOD_NOT_ALLOWED,
    StatusCode::BAD_REQUEST,
    StatusCode::NOT_IMPLEMENTED,
];

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
struct UploadPage {
    is_truncated: bool,
    next_key_marker: String,
    next_upload_id_marker: String,
    #[serde(rename = "Upload")]
    uploads: Vec<UploadListing>,
}

impl UploadPage {
    /// Where the next one begins.
    fn markers(&self) -> (String, String) {
        (self.next_key_marker.clone(), self.next_upload_id_marker.clone())
    }
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct UploadListing {
    key: String,
    upload_id: String,
    initiated: String,
}

/// Returns the unfinished uploads below a folder; empty if the server does not list them. Names are those of the store.
pub(super) fn list(disk: &S3Disk, folder: &str) -> io::Result<Vec<UnfinishedFile>> {
    let below = format!("{}/", disk.path(folder)?);
    let (mut found, mut page) = (Vec::new(), UploadPage::default());
    loop {
        let (store, prefix, before) = (Arc::clone(&disk.store), below.clone(), page);
        let markers = before.markers();
        let Some(answer) = runtime::wait(async move { ask_until_answered(&store, &prefix, &before).await })?? else {
            return Ok(found);
        };
        page = read(&answer)?;
        for upload in &page.uploads {
            found.extend(named(upload, folder, &below));
        }
        // Otherwise a server that does not advance would be queried forever.
        if !page.is_truncated || page.uploads.is_empty() || page.markers() == markers {
            return Ok(found);
        }
    }
}

/// Gives up all parts of one.
pub(super) fn end(disk: &S3Disk, upload: &UnfinishedFile) -> io::Result<()> {
    let (path, id) = (disk.path(&upload.path)?, upload.id.clone());
    disk.wait(|store| async move { store.abort_multipart(&path, &id).await })
}

fn named(upload: &UploadListing, folder: &str, below: &str) -> Option<UnfinishedFile> {
    let name = upload.key.strip_prefix(below)?;
    let since = OffsetDateTime::parse(&upload.initiated, &Rfc3339).ok()?;
    Some(UnfinishedFile {
        path: format!("{folder}/{name}"),
        id: upload.upload_id.clone(),
        since: Duration::from_secs(u64::try_from(since.unix_timestamp()).ok()?),
    })
}

fn read(answer: &[u8]) -> io::Result<UploadPage> {
    let text = std::str::from_utf8(answer).map_err(io::Error::other)?;
    quick_xml::de::from_str(text).map_err(io::Error::other)
}

/// As [`ask`], and again when there was an error, which may pass.
async fn ask_until_answered(store: &AmazonS3, prefix: &str, before: &UploadPage) -> io::Result<Option<Vec<u8>>> {
    for pause in PAUSES {
        if let Ok(answer) = ask(store, prefix, before).await {
            return Ok(answer);
        }
        tokio::time::sleep(pause).await;
    }
    ask(store, prefix, before).await
}

/// The page behind another one; none where the server has no answer.
async fn ask(store: &AmazonS3, prefix: &str, before: &UploadPage) -> io::Result<Option<Vec<u8>>> {
    // Of the library's own request this one has the address of the bucket, and the region.
    let any = Path::from("x");
    let signed = store.signed_url(Method::GET, &any, Duration::from_mins(1));
    let signed = signed.await.map_err(|error| refused(&error))?;
    let (url, region) = (question(&signed, prefix, before)?, region_of(&signed));
    let mut request = HttpRequest::new(HttpRequestBody::empty());
    *request.uri_mut() = url.as_str().parse().map_err(io::Error::other)?;
    let credential = store.credentials().get_credential().await;
    let credential = credential.map_err(|error| refused(&error))?;
    let authorizer = AwsAuthorizer::new(&credential, "s3", &region);
    let signed = authorizer.try_authorize(&mut request, None);
    signed.map_err(|error| refused(&error))?;
    let options = ClientOptions::new()
        .with_timeout(REQUEST_TIME_MAX)
        .with_allow_http(url.scheme() == "http");
    let client = ReqwestConnector::default().connect(&options);
    let client = client.map_err(|error| refused(&error))?;
    let answer = client.execute(request).await.map_err(io::Error::other)?;
    let status = answer.status();
    if UNANSWERED.contains(&status) {
        return Ok(None);
    }
    if !status.is_success() {
        return Err(io::Error::other(format!("uploads cannot be listed: {status}")));
    }
    let bytes = answer.into_body().bytes().await.map_err(io::Error::other)?;
    if bytes.len() > ANSWER_BYTES_MAX {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    Ok(Some(bytes.into()))
}

fn question(object: &Url, prefix: &str, before: &UploadPage) -> io::Result<Url> {
    let mut url = bucket_of(object)?;
    let mut asked = url.query_pairs_mut();
    asked.append_pair("prefix", prefix).append_pair("uploads", "");
    if before.is_truncated {
        asked.append_pair("key-marker", &before.next_key_marker);
        asked.append_pair("upload-id-marker", &before.next_upload_id_marker);
    }
    drop(asked);
    Ok(url)
}

/// The address of a bucket, from that of an object right in it.
fn bucket_of(object: &Url) -> io::Result<Url> {
    let mut bucket = object.clone();
    bucket.set_query(None);
    let parts = bucket.path_segments_mut();
    parts.map_err(|()| io::Error::other("it has no path"))?.pop();
    Ok(bucket)
}

/// The region that a request is signed for.
fn region_of(signed: &Url) -> String {
    let mut pairs = signed.query_pairs();
    let scope = pairs
        .find(|(name, _)| name == "X-Amz-Credential")
        .map(|(_, scope)| scope);
    // Behind the key and the date.
    let region = scope.as_deref().and_then(|scope| scope.rsplit('/').nth(2));
    region.unwrap_or("us-east-1").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ANSWER: &str = r#"<?xml version="1.0" encoding="UTF-8"?>
        <ListMultipartUploadsResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">
          <Bucket>fields</Bucket><KeyMarker></KeyMarker><IsTruncated>true</IsTruncated>
          <NextKeyMarker>a/data/1/2</NextKeyMarker><NextUploadIdMarker>x&amp;y</NextUploadIdMarker>
          <Upload><Key>a/data/1/2</Key><UploadId>x&amp;y</UploadId><Initiated>2026-11-25T19:52:01.250Z</Initiated>
            <StorageClass>STANDARD</StorageClass></Upload>
          <Upload><Key>a/database/1</Key><UploadId>z</UploadId><Initiated>2026-11-25T19:52:02Z</Initiated></Upload>
        </ListMultipartUploadsResult>"#;

    #[test]
    fn a_page_is_read() {
        let page = read(ANSWER.as_bytes()).unwrap();
        assert!(page.is_truncated && page.next_key_marker == "a/data/1/2" && page.next_upload_id_marker == "x&y");
        let found: Vec<_> = page
            .uploads
            .iter()
            .filter_map(|upload| named(upload, "data", "a/data/"))
            .collect();
        assert_eq!(found.len(), 1);
        assert_eq!((&*found[0].path, &*found[0].id), ("data/1/2", "x&y"));
        assert_eq!(found[0].since, Duration::from_secs(1_795_636_321));
        assert!(read(b"<ListMultipartUploadsResult/>").unwrap().uploads.is_empty());
        for end in 0..ANSWER.len() {
            // Whatever it is, it is an error and no panic.
            let _ = read(&ANSWER.as_bytes()[..end]);
        }
    }

    #[test]
    fn addresses_and_regions_are_those_of_the_request() {
        let credential = "X-Amz-Credential=key%2F20261125%2Feu-west-1%2Fs3%2Faws4_request";
        for (object, bucket) in [
            ("http://host:1/fields/x", "http://host:1/fields"),
            ("https://fields.host/x", "https://fields.host/"),
        ] {
            let signed: Url = format!("{object}?a=b&{credential}").parse().unwrap();
            assert_eq!(bucket_of(&signed).unwrap().as_str(), bucket);
            assert_eq!(region_of(&signed), "eu-west-1");
        }
    }
}
