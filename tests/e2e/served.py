"""The real program, started and spoken to: what the end-to-end tests share."""
import http.client
import json
import re
import signal
import subprocess
import tempfile
import urllib.parse
import urllib.request


def start(program, model, *flags):
    """A server on a free port, ready; and its address."""
    log = tempfile.TemporaryFile("w+")  # a pipe that nobody reads would fill up, and whoever writes to it would wait
    server = subprocess.Popen([program, "serve", model, "--port", "0", *flags], stdout=subprocess.PIPE, stderr=log,
                              text=True)
    server.stderr = log
    url = None
    for line in server.stdout:
        if found := re.search(r"Serving \S+ at (http://\S+)", line):
            url = found[1]
        if line.startswith("Ready"):
            return server, url
    log.seek(0)
    raise RuntimeError("the server ended before it was ready: " + log.read())


def last_words(server):
    """What it wrote to its log: a sanitizer's report, when one ended it."""
    server.stderr.seek(0)
    return server.stderr.read()[-8000:]


def stop(server):
    server.send_signal(signal.SIGTERM)
    assert server.wait(timeout=30) == 0, last_words(server)
    server.stdout.close()
    server.stderr.close()


def get_json(url):
    with urllib.request.urlopen(url, timeout=60) as reply:
        return json.load(reply)


def post(url, body, **headers):
    """Status and bytes; body: bytes as they are, anything else as JSON."""
    parts = urllib.parse.urlsplit(url)
    connection = http.client.HTTPConnection(parts.netloc, timeout=60)
    sent = body if isinstance(body, bytes) else json.dumps(body).encode()
    connection.request("POST", parts.path, sent, {"Content-Type": "application/json"} | headers)
    reply = connection.getresponse()
    status, read = reply.status, reply.read()
    connection.close()
    return status, read


def post_json(url, body, **headers):
    status, read = post(url, body, **headers)
    return status, json.loads(read)


def events(stream):
    """The server-sent events of a whole reply as (name, data); each must be UTF-8 by itself."""
    out = []
    for block in stream.split(b"\n\n"):
        fields = dict(line.split(": ", 1) for line in block.decode("utf-8").splitlines() if not line.startswith(":"))
        if "data" in fields:
            out.append((fields.get("event"), fields["data"]))
    return out
