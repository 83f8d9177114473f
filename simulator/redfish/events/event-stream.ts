import type { ServerResponse } from "node:http";
import type { DeviceEvent, ManagedDevice } from "../../devices/managed-device.ts";
import type { Trait } from "../../devices/profile.ts";

/** Devices have no timers of their own: the stream finds out what is new. Real time, as the client's patience is. */
const FINDS_OUT_EVERY_MS = 100;
const KEEP_ALIVE_MS = 1_000;
const FLOOD_CHUNK = 16 * 1_024;

/** Sends what happens to the device until the client leaves, or the management controller restarts. */
export function streamEvents(device: ManagedDevice, response: ServerResponse): void {
  const { eventStreams, traits } = device;
  eventStreams.open += 1;
  eventStreams.opened += 1;
  const stream = new EventStream(device, response);
  const timer = setInterval(() => stream.goOn(), FINDS_OUT_EVERY_MS);
  response.once("close", () => {
    clearInterval(timer);
    eventStreams.open -= 1;
  });
  if (traits.includes("events_hang")) return;
  response.writeHead(200, { "Content-Type": "text/event-stream", "Cache-Control": "no-cache", "OData-Version": "4.0" });
  response.flushHeaders();
  if (!traits.includes("events_silent")) stream.keepAlive();
}

export type News = Pick<DeviceEvent, "messageId" | "message" | "severity">;

/** What happened to a device since it was asked last. */
export class DeviceNews {
  readonly #device: ManagedDevice;
  #sentUpTo: number;
  #ailing: string;
  #requests: number;

  constructor(device: ManagedDevice) {
    this.#device = device;
    this.#sentUpTo = device.events.at(-1)?.sequence ?? 0;
    this.#ailing = device.ailing;
    this.#requests = device.requests;
  }

  take(): News[] {
    const { events, ailing, requests, traits } = this.#device;
    const news: News[] = events.filter(({ sequence }) => sequence > this.#sentUpTo);
    if (ailing !== this.#ailing)
      news.push({
        messageId: "ResourceEvent.1.3.ResourceStatusChanged",
        message: "Health changed.",
        severity: "Warning",
      });
    if (requests !== this.#requests && traits.includes("events_of_requests"))
      news.push({ messageId: "Security.1.0.AccessAllowed", message: "A request was let in.", severity: "OK" });
    this.#sentUpTo = events.at(-1)?.sequence ?? this.#sentUpTo;
    this.#ailing = ailing;
    this.#requests = requests;
    return news;
  }
}

/** One event, as it is sent. */
export const eventOf = (id: number, { messageId, message, severity }: News, context?: string) => ({
  "@odata.type": "#Event.v1_9_0.Event",
  Id: String(id),
  Name: "Event Array",
  ...(context !== undefined && { Context: context }),
  Events: [{ EventType: "Event", MessageId: messageId, Message: message, MessageSeverity: severity }],
});

/** What one client has been sent. */
class EventStream {
  readonly #device: ManagedDevice;
  readonly #response: ServerResponse;
  readonly #news: DeviceNews;
  #quietSince = Date.now();
  #id = 0;

  constructor(device: ManagedDevice, response: ServerResponse) {
    this.#device = device;
    this.#response = response;
    this.#news = new DeviceNews(device);
    response.on("drain", () => this.#has("events_flood") && this.#flood());
  }

  goOn(): void {
    const { reachable } = this.#device;
    if (!reachable) this.#response.socket?.destroy();
    else if (this.#has("events_drip")) this.#response.write("data: x");
    else if (this.#has("events_flood")) this.#flood();
    else if (!this.#has("events_hang") && !this.#has("events_silent")) this.#tell();
  }

  keepAlive(): void {
    this.#quietSince = Date.now();
    if (!this.#has("events_without_keep_alive") && !this.#has("events_drip"))
      this.#response.write(": stream keep-alive\n\n");
  }

  #has(trait: Trait): boolean {
    return this.#device.traits.includes(trait);
  }

  #tell(): void {
    const news = this.#news.take();
    if (!this.#has("events_forgotten")) for (const event of news) this.#send(event);
    if (news.length > 0 && this.#has("events_cut")) this.#response.end();
    else if (Date.now() - this.#quietSince >= KEEP_ALIVE_MS) this.keepAlive();
  }

  /** Written over several lines, as some controllers do. */
  #send(news: News): void {
    this.#id += 1;
    this.#quietSince = Date.now();
    const lines = JSON.stringify(eventOf(this.#id, news), null, 1).split("\n");
    this.#response.write(`id: ${this.#id}\n${lines.map((line) => `data: ${line}\n`).join("")}\n`);
  }

  #flood(): void {
    const chunk = "data: flood\n\n".repeat(FLOOD_CHUNK / 13);
    while (!this.#response.destroyed && this.#response.write(chunk));
  }
}
