"""Receives the notifications of a worker: python receiver.py PORT

NOTIFY_SECRET is the secret of FOLLOW_UP_NOTIFY_SECRET_FILE.
"""

import os
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from standardwebhooks import Webhook, WebhookVerificationError

webhook = Webhook(os.environ["NOTIFY_SECRET"])
seen: set[str] = set()  # In production, use a database. A notification is sent again if its response was lost.


class Receiver(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        try:
            notification = webhook.verify(body, dict(self.headers))
        except WebhookVerificationError as error:
            print("rejected:", error, flush=True)
            return self.respond(401)
        if self.headers["webhook-id"] not in seen:
            seen.add(self.headers["webhook-id"])
            data = notification["data"]
            print(self.headers["webhook-id"], notification["type"], data["workflowId"], data["outcome"], flush=True)
        self.respond(204)

    def respond(self, status: int) -> None:
        self.send_response(status)
        self.end_headers()


print("listening", flush=True)
ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Receiver).serve_forever()
