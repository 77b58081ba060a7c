// RequestReader and EventQueue without sockets: the same request however its bytes were cut; events joined and bounded.
#include "server/request_reader.h"

#include <gtest/gtest.h>

#include <string>

#include "server/event_queue.h"
#include "tests/server/fake_runner.h"

namespace rondo {
namespace {

using Progress = RequestReader::Progress;

const std::string kRequests[] = {
    "POST /a?b HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 5\r\n\r\nhello",
    "POST /a?b HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
    "2;x=y\r\nhe\r\n3\r\nllo\r\n0\r\nTrailer: t\r\n\r\n",
};

TEST(RequestReader, ReadsTheSameRequestHoweverItsBytesAreCut) {
  for (const std::string& bytes : kRequests) {
    for (std::size_t cut = 0; cut <= bytes.size(); ++cut) {
      RequestReader reader(1000, 1000);
      std::string received = bytes.substr(0, cut);
      const Progress first = reader.feed(received);
      ASSERT_NE(first, Progress::Refused) << reader.refusal().message;
      received += bytes.substr(cut) + "GET next";
      ASSERT_EQ(reader.feed(received), Progress::Complete) << "cut at " << cut << ": " << reader.refusal().message;
      const HttpRequest request = reader.take();
      EXPECT_EQ(request.method, "POST");
      EXPECT_EQ(request.target, "/a?b");
      EXPECT_EQ(request.content_type, "application/json");
      EXPECT_EQ(request.body, "hello") << "cut at " << cut;
      EXPECT_EQ(received, "GET next") << "cut at " << cut;
    }
  }
}

// Each byte by itself, as a slow client's come. The debug build has Beast's own assertions on.
TEST(RequestReader, ReadsABodyInChunksByteByByte) {
  const std::string header = "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n";
  for (const std::string chunks : {"", "1\r\na\r\n", "3\r\nabc\r\n2;x=y\r\nde\r\n"}) {
    for (const std::string end : {"0\r\n\r\n", "0\r\nTrailer: t\r\n\r\n", "000\r\n\r\n"}) {
      RequestReader reader(1000, 1000);
      std::string received;
      const std::string bytes = header + chunks + end;
      for (std::size_t i = 0; i < bytes.size(); ++i) {
        received += bytes[i];
        ASSERT_EQ(reader.feed(received) == Progress::Complete, i + 1 == bytes.size())
            << "byte " << i << " of " << bytes;
      }
      EXPECT_TRUE(received.empty());
    }
  }
}

TEST(RequestReader, KnowsWhereInARequestItIs) {
  RequestReader reader(1000, 1000);
  std::string received = "\r\n";
  EXPECT_EQ(reader.feed(received), Progress::Nothing);
  received += "POST / HTTP/1.1\r\n";
  EXPECT_EQ(reader.feed(received), Progress::InHeader);
  received += "Host: x\r\nContent-Length: 3\r\n\r\n";
  EXPECT_EQ(reader.feed(received), Progress::InBody);
  received += "abc";
  EXPECT_EQ(reader.feed(received), Progress::Complete);
}

TEST(RequestReader, HoldsItsLimitsToTheByte) {
  const std::string header = "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n";
  for (const bool fits : {true, false}) {
    std::string received = header + "0123456789";
    RequestReader by_header(header.size() - (fits ? 0 : 1), 1000);
    EXPECT_EQ(by_header.feed(received), fits ? Progress::Complete : Progress::Refused);
    received = header + "0123456789";
    RequestReader by_body(1000, fits ? 10 : 9);
    EXPECT_EQ(by_body.feed(received), fits ? Progress::Complete : Progress::Refused);
    EXPECT_EQ(by_body.refusal().status, fits ? 400 : 413);
  }
}

TEST(EventQueue, JoinsWhatCameSinceTheLastLook) {
  int wakes = 0;
  EventQueue queue(1000, [&] { ++wakes; });
  say(queue, "a", {1});
  say(queue, "b", {2, 3});
  EXPECT_EQ(wakes, 1);
  const EventQueue::Taken taken = queue.take();
  EXPECT_EQ(taken.text->text, "ab");
  EXPECT_EQ(taken.text->ids, (std::vector<std::int32_t>{1, 2, 3}));
  EXPECT_FALSE(taken.is_last());
  queue.on_end({});
  EXPECT_EQ(wakes, 2);
  EXPECT_TRUE(queue.take().is_last());
}

TEST(EventQueue, HoldsNoMoreThanItsBound) {
  int wakes = 0;
  EventQueue queue(100, [&] { ++wakes; });
  for (int i = 0; i < 1000; ++i) say(queue, std::string(10, 'x'), {});
  EXPECT_EQ(wakes, 2) << "woken for the first text, and again because the reader may be stuck";
  const EventQueue::Taken taken = queue.take();
  EXPECT_TRUE(taken.overflowed);
  EXPECT_FALSE(taken.text.has_value());
  EXPECT_TRUE(queue.take().overflowed) << "for good";
}

}  // namespace
}  // namespace rondo
