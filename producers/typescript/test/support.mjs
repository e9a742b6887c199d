// Clients of a running stack, and a proxy between client and server that loses replies.
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { connect, createServer } from "node:net";
import { test } from "node:test";

import { connectHttp } from "mnemon";
import { connectNats } from "mnemon/nats";

export const { MNEMON_NATS_URL, MNEMON_GATEWAY_URL, MNEMON_KEY, MNEMON_TENANT, MNEMON_MODEL_URL } = process.env;

/** Machines that run many tests are slow; no test is about how fast the memory answers. */
export const PATIENT = { publish: 60_000, retry: 60_000, ask: 60_000, save: 60_000 };

export const TRANSPORTS = {
  nats: {
    url: MNEMON_NATS_URL,
    connect: (url = MNEMON_NATS_URL, timeouts = PATIENT) => connectNats(url, { tenant: MNEMON_TENANT, timeouts }),
  },
  http: {
    url: MNEMON_GATEWAY_URL,
    connect: async (url = MNEMON_GATEWAY_URL, timeouts = PATIENT) => connectHttp(url, { key: MNEMON_KEY, timeouts }),
  },
};

export const newUser = () => `user-${randomUUID()}`;

/** Declares a test for each transport; the client is closed after it. */
export function testEach(name, check) {
  for (const [transport, { connect }] of Object.entries(TRANSPORTS)) {
    test(`${transport}: ${name}`, async () => {
      const memory = await connect();
      try {
        await check(memory, transport);
      } finally {
        await memory.close();
      }
    });
  }
}

/** A proxy in front of a server: it can lose replies, and be away. */
export class LossyProxy {
  #target;
  #server;
  #sockets = new Set();
  #losses = 0;
  lost = 0;
  /** All that the clients have sent. */
  received = "";

  constructor(url) {
    const { hostname, port } = new URL(url);
    this.#target = { host: hostname, port: Number(port) };
  }

  async start(port = 0) {
    this.#server = createServer((client) => this.#serve(client)).listen(port, "127.0.0.1");
    await once(this.#server, "listening");
    this.port = this.#server.address().port;
  }

  url(scheme) {
    return `${scheme}://127.0.0.1:${this.port}`;
  }

  /** Ends the connection in place of the next replies that acknowledge an event. */
  loseAcknowledgements(count) {
    this.#losses = count;
  }

  /** Ends all connections, and refuses new ones until `start`. */
  async stop() {
    this.#server.close();
    for (const socket of this.#sockets) socket.destroy();
    await once(this.#server, "close");
  }

  #serve(client) {
    const server = connect(this.#target);
    for (const [socket, other] of [
      [client, server],
      [server, client],
    ]) {
      this.#sockets.add(socket);
      socket.on("error", () => {});
      socket.on("close", () => {
        this.#sockets.delete(socket);
        other.destroy();
      });
    }
    client.on("data", (data) => {
      this.received += data;
      server.write(data);
    });
    server.on("data", (data) => {
      if (this.#losses && /"seq":\s*\d/.test(data.toString("latin1"))) {
        this.#losses -= 1;
        this.lost += 1;
        client.destroy();
      } else {
        client.write(data);
      }
    });
  }
}
