// Writes standardwebhooks.json: signatures of the JavaScript library of Standard Webhooks. To make them again:
//   npm install --no-save standardwebhooks@1.1.1 && node standardwebhooks.mjs > standardwebhooks.json
import { Webhook } from "standardwebhooks";

const key = (bytes) => "whsec_" + Buffer.from(Array.from({ length: bytes }, (_, i) => (i * 37 + bytes) % 256)).toString("base64");
const event = JSON.stringify({
  specversion: "1.0", id: "4c878df1cf27efa5330b5138fa7d1fdb", type: "dev.scheduler.placement.moved.v1", subject: "shop/web",
  data: { event: "moved", summary: "placement shop/web moved: berlin -> paris", message: "größer als 5 µs \u2028 🚀" },
});
const vectors = [];
for (const secret of [key(24), key(32), key(64)]) {
  for (const [id, seconds, body] of [["4c878df1cf27efa5330b5138fa7d1fdb", 1795817556, event], ["test-1", 0, "{}"], ["x", 4102444800, ""]]) {
    const signature = new Webhook(secret).sign(id, new Date(seconds * 1000), body);
    vectors.push({ secret, id, seconds, body, signature });
  }
}
console.log(JSON.stringify(vectors, null, 1));
