/** A server on this host that sends a page and its data, whatever state these are in. */

import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";

import type { Sent } from "./pages";

export class PageServer {
  #status = 200;
  #data: Buffer;
  #answered = 0;
  readonly #server: Server;

  private constructor(page: Buffer, data: Buffer) {
    this.#data = data;
    this.#server = createServer((request, response) => {
      if (request.url === "/") {
        response.end(page);
        return;
      }
      this.#answered += 1;
      response.statusCode = this.#status;
      response.end(this.#data);
    });
  }

  static async start({ page, data }: Sent): Promise<PageServer> {
    const made = new PageServer(page, data);
    await new Promise<void>((resolve) => made.#server.listen(0, "127.0.0.1", resolve));
    return made;
  }

  get address(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/`;
  }

  /** How often data were asked for. */
  get answered(): number {
    return this.#answered;
  }

  /** What is answered from now on. */
  answer(data: Buffer, status = 200): void {
    [this.#data, this.#status] = [data, status];
  }

  /** Waits until the page has taken in what is answered now: then it asks for the next. */
  async taken(): Promise<void> {
    const enough = this.#answered + 2;
    while (this.#answered < enough) await new Promise((resolve) => setTimeout(resolve, 20));
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}
