import type { FastifyPluginAsync, FastifyRequest } from "fastify";
import { AppError } from "../../kernel/errors.ts";
import type { ServiceDeps } from "../../services/call/deps.ts";
import {
  EVENT_INBOXES,
  type EventListenerName,
  type EventRequest,
  isEventAddress,
  openEventDesk,
} from "../../services/device/event-addresses.ts";
import { toRestError } from "./route.ts";

export interface DeviceEventsDeps {
  readonly services: ServiceDeps;
  /** Whose addresses are good here. */
  readonly listeners: readonly EventListenerName[];
  readonly reportUnexpected: (cause: unknown, request: FastifyRequest) => string;
}

/** Whatever is wrong with the address: who asks learns nothing by it. */
const nothingHere = (): AppError => new AppError("not_found", "There is nothing here");

/** Takes what BMCs send of themselves. Nothing of it is read: that it came is all. */
export function createDeviceEvents({ services, listeners, reportUnexpected }: DeviceEventsDeps): FastifyPluginAsync {
  const note = openEventDesk(services);
  return async (app) => {
    app.removeAllContentTypeParsers();
    app.addContentTypeParser("*", (_, payload, done) => {
      payload.resume();
      done(null);
    });
    app.route({
      method: "POST",
      url: `${EVENT_INBOXES}/:kind/:id/:epoch/:expires/:signature`,
      onRequest: async (request) => {
        if (!isEventAddress(services, request.params as EventRequest, listeners)) throw nothingHere();
      },
      handler: async (request, reply) => {
        if (!(await note(request.params as EventRequest))) throw nothingHere();
        return reply.code(204).send();
      },
      errorHandler: (error, request, reply) => {
        const { status, body } = toRestError(error, (cause) => reportUnexpected(cause, request));
        return reply.code(status).send(body);
      },
    });
  };
}
