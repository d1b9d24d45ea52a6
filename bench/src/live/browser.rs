//! A headless Chromium that is told what to do over two pipes (Chrome DevTools Protocol, messages of
//! JSON that end with a zero octet), so that no port is opened and no other program is needed.

use std::io::{self, BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{ChildStdin, ChildStdout, Command, Stdio};

use base64::Engine as _;
use meikyo_units::{Nanos, WallTime};
use serde_json::{Value, json};

use crate::placement::{Placed, Placement, spawn, wait_until};

/// Where Debian installs it.
const PROGRAM: &str = "/usr/bin/chromium";

/// What keeps it from looking anywhere but at the page. The last one lets it run as root.
const OPTIONS: [&str; 10] = [
    "--headless",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--mute-audio",
    "--remote-debugging-pipe",
    "--no-sandbox",
];

/// The window that the benches measure in, in CSS pixels.
pub(crate) const WINDOW: (u32, u32) = (1_440, 900);

/// How long a page may take for what is asked of it.
const PATIENCE: Nanos = Nanos::from_secs(60);

/// How long it may take to end when it was asked to.
const ENDING: Nanos = Nanos::from_secs(20);

/// Why the browser did not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BrowserError {
    /// Not installed.
    #[error("`{PROGRAM}` is not installed")]
    Missing,
    /// The system refused.
    #[error("cannot run `{PROGRAM}`")]
    Run(#[from] io::Error),
    /// It ended, or said what cannot be understood.
    #[error("the browser's answer to `{method}` is none: {said}")]
    Answer {
        /// What it was asked.
        method: String,
        /// The browser's own words.
        said: String,
    },
    /// The page threw an error.
    #[error("the page failed at `{expression}`: {said}")]
    Page {
        /// What it was to evaluate.
        expression: String,
        /// The page's own words.
        said: String,
    },
    /// Something did not become true.
    #[error("the page did not get to `{condition}` within {PATIENCE}; it says: {said}")]
    Never {
        /// What was waited for.
        condition: String,
        /// What stood on the page then.
        said: String,
    },
}

/// A running browser with one page; it ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Browser {
    /// `None` while it is waited for.
    process: Option<Placed>,
    requests: ChildStdin,
    answers: BufReader<ChildStdout>,
    next_id: u64,
    session: String,
    /// What the page asked of the network, and what came of it, since that was taken last.
    network: Vec<Value>,
}

impl Browser {
    /// Starts it with an empty profile in `directory`.
    ///
    /// # Errors
    /// [`BrowserError::Missing`] where there is no Chromium, others as they say.
    pub(crate) fn start(directory: &Path) -> Result<Self, BrowserError> {
        Self::start_at(directory, Placement::default(), &[])
    }

    /// The same at its place, with further options of Chromium.
    pub(crate) fn start_at(
        directory: &Path,
        placement: Placement,
        options: &[&str],
    ) -> Result<Self, BrowserError> {
        if !Path::new(PROGRAM).exists() {
            return Err(BrowserError::Missing);
        }
        // The protocol is spoken on descriptors 3 and 4, which the shell makes of 0 and 1.
        let mut command = Command::new("sh");
        command.args(["-c", r#"exec "$@" 3<&0 4>&1 0</dev/null 1>/dev/null 2>&1"#, "sh", PROGRAM]);
        command.args(OPTIONS).args(options).arg(format!("--window-size={},{}", WINDOW.0, WINDOW.1));
        command.arg(format!("--user-data-dir={}", directory.display())).arg("about:blank");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut process = spawn(command, placement)?;
        let child = process.child();
        let requests = child.stdin.take().expect("standard input is piped");
        let answers = BufReader::new(child.stdout.take().expect("standard output is piped"));
        let mut browser = Self {
            process: Some(process),
            requests,
            answers,
            next_id: 0,
            session: String::new(),
            network: Vec::new(),
        };
        browser.attach()?;
        Ok(browser)
    }

    fn attach(&mut self) -> Result<(), BrowserError> {
        let made = self.ask("Target.createTarget", &json!({ "url": "about:blank" }))?;
        let attach = json!({ "targetId": made["targetId"], "flatten": true });
        let attached = self.ask("Target.attachToTarget", &attach)?;
        self.session = attached["sessionId"].as_str().unwrap_or_default().to_owned();
        self.ask("Page.enable", &json!({}))?;
        self.ask("Performance.enable", &json!({}))?;
        let (width, height) = WINDOW;
        let metrics =
            json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": false });
        self.ask("Emulation.setDeviceMetricsOverride", &metrics)?;
        Ok(())
    }

    /// Asks one thing of the page (before there is one, of the browser) and waits for the answer.
    pub(crate) fn ask(&mut self, method: &str, parameters: &Value) -> Result<Value, BrowserError> {
        self.next_id += 1;
        let id = self.next_id;
        let mut request = json!({ "id": id, "method": method, "params": parameters });
        if !self.session.is_empty() {
            request["sessionId"] = Value::from(self.session.as_str());
        }
        let mut octets = request.to_string().into_bytes();
        octets.push(0);
        self.requests.write_all(&octets)?;
        loop {
            let mut message = self.receive(method)?;
            if message["method"].as_str().is_some_and(|method| method.starts_with("Network.")) {
                self.network.push(message);
            } else if message["id"] == id {
                if message.get("error").is_some() {
                    let said = message["error"].to_string();
                    return Err(BrowserError::Answer { method: method.into(), said });
                }
                return Ok(message["result"].take());
            }
        }
    }

    fn receive(&mut self, method: &str) -> Result<Value, BrowserError> {
        let mut octets = Vec::new();
        self.answers.read_until(0, &mut octets)?;
        let none = |said: String| BrowserError::Answer { method: method.into(), said };
        if octets.pop() != Some(0) {
            return Err(none("the browser has ended".into()));
        }
        serde_json::from_slice(&octets).map_err(|error| none(error.to_string()))
    }

    /// Has it tell from now on what the page asks of the network.
    pub(crate) fn watch_network(&mut self) -> Result<(), BrowserError> {
        self.ask("Network.enable", &json!({})).map(drop)
    }

    /// What it has told of that since this was taken last, in its order (domain `Network` of the
    /// protocol).
    pub(crate) fn take_network(&mut self) -> Vec<Value> {
        std::mem::take(&mut self.network)
    }

    /// Goes to an address; the page begins anew also where only the part behind `#` differs.
    pub(crate) fn open(&mut self, url: &str) -> Result<(), BrowserError> {
        self.ask("Page.navigate", &json!({ "url": "about:blank" }))?;
        self.ask("Page.navigate", &json!({ "url": url }))?;
        Ok(())
    }

    /// The value of an expression in the page.
    pub(crate) fn evaluate(&mut self, expression: &str) -> Result<Value, BrowserError> {
        let parameters =
            json!({ "expression": expression, "returnByValue": true, "awaitPromise": true });
        let mut answer = self.ask("Runtime.evaluate", &parameters)?;
        if answer.get("exceptionDetails").is_some() {
            let said = answer["exceptionDetails"]["exception"]["description"].to_string();
            return Err(BrowserError::Page { expression: expression.into(), said });
        }
        Ok(answer["result"]["value"].take())
    }

    /// A number that an expression in the page comes to.
    pub(crate) fn number(&mut self, expression: &str) -> Result<f64, BrowserError> {
        let value = self.evaluate(expression)?;
        value.as_f64().ok_or_else(|| BrowserError::Page {
            expression: expression.into(),
            said: format!("{value} is no number"),
        })
    }

    /// Waits until an expression in the page is true.
    pub(crate) fn wait_for(&mut self, condition: &str) -> Result<(), BrowserError> {
        let deadline = WallTime::now() + PATIENCE;
        while WallTime::now() < deadline {
            // A page that is being left has no context to evaluate in for a moment.
            match self.evaluate(&format!("Boolean({condition})")) {
                Ok(Value::Bool(true)) => return Ok(()),
                Ok(_) | Err(BrowserError::Answer { .. } | BrowserError::Page { .. }) => {}
                Err(error) => return Err(error),
            }
            wait_until(WallTime::now() + Nanos::from_millis(20))?;
        }
        let said = self.evaluate("document.body?.innerText.slice(0, 300)")?.to_string();
        Err(BrowserError::Never { condition: condition.into(), said })
    }

    /// Seconds that the page's main thread has spent on tasks since it was opened.
    pub(crate) fn task_seconds(&mut self) -> Result<f64, BrowserError> {
        let answer = self.ask("Performance.getMetrics", &json!({}))?;
        let metrics = answer["metrics"].as_array().map(Vec::as_slice).unwrap_or_default();
        let duration = metrics.iter().find(|metric| metric["name"] == "TaskDuration");
        duration.and_then(|metric| metric["value"].as_f64()).ok_or_else(|| BrowserError::Answer {
            method: "Performance.getMetrics".into(),
            said: answer.to_string(),
        })
    }

    /// A part of the screen as a PNG file: what a person would see there now.
    pub(crate) fn screenshot(
        &mut self,
        (x, y): (u32, u32),
        (width, height): (u32, u32),
    ) -> Result<Vec<u8>, BrowserError> {
        let clip = json!({ "x": x, "y": y, "width": width, "height": height, "scale": 1 });
        let parameters = json!({ "format": "png", "clip": clip, "optimizeForSpeed": true });
        let answer = self.ask("Page.captureScreenshot", &parameters)?;
        let text = answer["data"].as_str().unwrap_or_default();
        let decoded = base64::engine::general_purpose::STANDARD.decode(text);
        decoded.map_err(|error| BrowserError::Answer {
            method: "Page.captureScreenshot".into(),
            said: error.to_string(),
        })
    }

    /// Turns the wheel over a point; negative is towards the past, or into the picture.
    pub(crate) fn wheel(
        &mut self,
        (x, y): (u32, u32),
        sideways: f64,
        into: f64,
    ) -> Result<(), BrowserError> {
        let event =
            json!({ "type": "mouseWheel", "x": x, "y": y, "deltaX": sideways, "deltaY": into });
        self.ask("Input.dispatchMouseEvent", &event)?;
        Ok(())
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // Asked to end it also ends its helpers; if it cannot be asked any more, it has ended.
        self.session.clear();
        drop(self.ask("Browser.close", &json!({})));
        if let Some(process) = self.process.take() {
            // One that does not end is killed.
            drop(process.wait(ENDING));
        }
    }
}
