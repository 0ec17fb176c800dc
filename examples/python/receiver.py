"""Takes the notices of a worker: python receiver.py PORT, with the secret of FOLLOW_UP_NOTIFY_SECRET_FILE in NOTIFY_SECRET."""

import os
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from standardwebhooks import Webhook, WebhookVerificationError

webhook = Webhook(os.environ["NOTIFY_SECRET"])
seen: set[str] = set()  # Of yours, in a database: a notice comes again where its answer was lost.


class Receiver(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        try:
            notice = webhook.verify(body, dict(self.headers))
        except WebhookVerificationError as error:
            print("refused:", error, flush=True)
            return self.answer(401)
        if self.headers["webhook-id"] not in seen:
            seen.add(self.headers["webhook-id"])
            data = notice["data"]
            print(self.headers["webhook-id"], notice["type"], data["workflowId"], data["outcome"], flush=True)
        self.answer(204)

    def answer(self, status: int) -> None:
        self.send_response(status)
        self.end_headers()


print("listening", flush=True)
ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Receiver).serve_forever()
