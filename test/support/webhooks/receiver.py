"""A receiver of webhooks in a process of its own, with nothing but the standard library and `verify.py` of docs/webhooks.md.

Each delivery that it takes is a line of a file before it answers: time, id, kind of event, body. Arguments: port, file, secret,
number of first requests that get 503, number of next requests that are cut off.
"""

import json
import socket
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from verify import verify

PORT, FILE, SECRET = int(sys.argv[1]), sys.argv[2], sys.argv[3]
left = {"refused": int(sys.argv[4]), "cut": int(sys.argv[5])}
taken = open(FILE, "ab", buffering=0)
lock = threading.Lock()


class Receiver(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 60

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        with lock:
            status = self.status_for(body)
        if status is None:
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_RDWR)
            return
        self.send_response(status)
        self.send_header("content-length", "0")
        self.end_headers()

    def status_for(self, body):
        """The status of the response; None if the connection is cut off."""
        if left["refused"] > 0:
            left["refused"] -= 1
            return 503
        is_cut = left["cut"] > 0
        left["cut"] -= is_cut
        # Every second one is cut off before the delivery is taken, the others after it.
        if is_cut and left["cut"] % 2 == 0:
            return None
        if not verify(SECRET, self.headers, body):
            return 401
        fields = [str(time.time_ns() // 1_000_000), self.headers["webhook-id"], self.headers["fencepost-event"]]
        taken.write("\t".join(fields).encode() + b"\t" + body + b"\n")
        return None if is_cut else 204

    def log_message(self, *_):
        pass


class Server(ThreadingHTTPServer):
    request_queue_size = 128
    daemon_threads = True


server = Server(("127.0.0.1", PORT), Receiver)
print(json.dumps({"ready": True, "url": f"http://127.0.0.1:{server.server_port}/outcomes"}, separators=(",", ":")), flush=True)
server.serve_forever()
