import { createConnectRouter } from "@connectrpc/connect";
import { expect, test } from "vitest";
import { LifecycleService } from "../../../contract/millwright/v1/lifecycle_pb.js";
import { partOf, type ServicePart, serveParts } from "./service-parts.ts";

const list = partOf(LifecycleService, { listLifecycles: () => ({ lifecycles: [] }) });
const get = partOf(LifecycleService, { getLifecycle: () => ({}) });

const served = (...parts: readonly ServicePart[]) => {
  const router = createConnectRouter();
  serveParts(router, parts);
  return router.handlers.map(({ requestPath }) => requestPath);
};

test("several parts make one service", () => {
  expect(served(list, get)).toEqual([
    "/millwright.v1.LifecycleService/ListLifecycles",
    "/millwright.v1.LifecycleService/GetLifecycle",
  ]);
});

test("a method that no part brings, or that two bring, is refused at the start", () => {
  expect(() => served(list)).toThrow("millwright.v1.LifecycleService/getLifecycle is served by nothing");
  expect(() => served(list, get, list)).toThrow("millwright.v1.LifecycleService/listLifecycles is served twice");
});

test("a method that the contract does not have is refused", () => {
  const odd = { service: LifecycleService, methods: { drawLifecycle: () => ({}) } };
  expect(() => served(list, get, odd)).toThrow("millwright.v1.LifecycleService has no method drawLifecycle");
});
