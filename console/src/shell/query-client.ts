import { QueryClient } from "@tanstack/react-query";
import { isFinal } from "../api/errors.ts";

/** Events say when something is old; what is read stays true until then. */
export const queryClient = new QueryClient({
  defaultOptions: {
    queries: {
      staleTime: 60_000,
      gcTime: 120_000,
      retry: (failures, error) => failures < 2 && !isFinal(error),
      refetchOnWindowFocus: false,
      refetchOnReconnect: false,
      networkMode: "always",
    },
    mutations: { networkMode: "always" },
  },
});
