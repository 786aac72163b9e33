// SPDX-License-Identifier: Apache-2.0
#include "cache/deliver.h"

#include <utility>

#include "cache/client.h"
#include "proto/resp_write.h"

namespace ballast::cache {

void deliver(Request& request, std::string_view piece, bool last) {
  if (request.client != nullptr) [[likely]]
    return request.client->on_answer(request, piece, last);
  if (!request.done) return;
  // Parts are held on behalf of a client, and for nobody once it is gone.
  Client* joined = request.parent != nullptr ? request.parent->client : nullptr;
  if (joined != nullptr) joined->hold_part(*request.parent, piece.size());
  if ((request.parent == nullptr || joined != nullptr) &&
      request.reply.size() <= request.reply_limit)
    request.reply.append(piece);
  if (last) std::exchange(request.done, nullptr)(request);
}

void deliver_error(Request& request, std::string_view text) {
  std::string reply;
  proto::append_error(reply, text);
  if (request.client != nullptr) {
    Client* client = std::exchange(request.client, nullptr);
    if (request.streamed) return client->close("the shard's reply broke off");
    client->on_answer(request, reply, true);
  } else if (request.done) {
    request.reply = std::move(reply);
    std::exchange(request.done, nullptr)(request);
  }
}

}  // namespace ballast::cache
