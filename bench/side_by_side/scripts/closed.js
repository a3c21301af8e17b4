// k6: CLIENTS clients, each sending its next request as soon as it has a response.
import http from "k6/http";

export const options = { vus: Number(__ENV.CLIENTS), duration: `${__ENV.SECONDS}s`, discardResponseBodies: true };

export default function () {
  http.get(__ENV.URL);
}
