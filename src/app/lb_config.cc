// SPDX-License-Identifier: Apache-2.0
#include "app/lb_config.h"

#include <fmt/format.h>
#include <net/if.h>
#include <sys/un.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>

#include "app/lb_secret.h"
#include "app/read_file.h"
#include "app/toml_json.h"
#include "base/units.h"
#include "model/lb_fields.h"

namespace ballast::app {
namespace {

using model::Field;
using model::FieldForm;
using model::LbSettings;
using model::Problem;
using nlohmann::json;

std::string flag_of(std::string key) {
  std::ranges::replace(key, '_', '-');
  return "--" + key;
}

std::string variable_of(const std::string& key) {
  std::string name = "BALLAST_LB_" + key;
  std::ranges::transform(name, name.begin(), [](unsigned char c) { return std::toupper(c); });
  return name;
}

Unexpected wrong(const Document& document, const std::string& path, const std::string& message) {
  return fail(ErrorCode::kInvalid, fmt::format("{}: {}: {}", document.place(path), path, message));
}

template <typename Item>
Unexpected unknown_key(const Document& document, const std::string& path, const std::string& key,
                       std::span<const Field<Item>> fields, const char* list) {
  std::vector<std::string> known;
  if (list != nullptr) known.emplace_back(list);
  for (const auto& field : fields) known.emplace_back(field.key);
  const std::string near = nearest(key, known);
  return wrong(
      document, path,
      near.empty() ? "there is no such key" : "there is no such key; did you mean " + near);
}

// A value's text as the field's form wants it.
Result<std::string> text_of(const json& value, FieldForm form) {
  switch (form) {
    case FieldForm::kNumber:
      if (value.is_number_float()) return fmt::format("{}", value.get<double>());
      if (value.is_number()) return value.dump();
      return fail(ErrorCode::kInvalid, "must be a number, without quotes");
    case FieldForm::kSwitch:
      if (value.is_boolean()) return value.dump();
      return fail(ErrorCode::kInvalid, "must be true or false, without quotes");
    case FieldForm::kText:
      break;
  }
  if (value.is_string()) return value.get<std::string>();
  if (!value.is_array()) return fail(ErrorCode::kInvalid, "must be a string in quotes");
  std::string joined;
  for (const json& each : value) {
    if (!each.is_string()) return fail(ErrorCode::kInvalid, "must be strings in quotes");
    joined += (joined.empty() ? "" : ",") + each.get<std::string>();
  }
  return joined;
}

// Where an object stands; `list` names a key of it that the caller reads itself.
struct Place {
  const Document& document;
  std::string path;
  const char* list = nullptr;
};

// Sets the fields that `object` has.
template <typename Item>
Result<> read_fields(const json& object, std::span<const Field<Item>> fields, Item& item,
                     const Place& place) {
  const auto& [document, path, list] = place;
  if (!object.is_object()) return wrong(document, path, "must be a table of keys");
  for (const auto& [key, value] : object.items()) {
    if (list != nullptr && key == list) continue;
    const std::string inner = path.empty() ? key : path + "." + key;
    const auto field =
        std::ranges::find_if(fields, [&](const auto& each) { return each.key == key; });
    if (field == fields.end()) return unknown_key(document, inner, key, fields, list);
    const auto text = text_of(value, field->form);
    if (!text) return wrong(document, inner, text.error().message);
    if (const Result<> set = field->set(item, *text); !set)
      return wrong(document, inner, set.error().message);
  }
  return {};
}

Result<std::vector<model::Vip>> vips_of(const json& root, const Document& document,
                                        bool may_be_empty) {
  std::vector<model::Vip> vips;
  const json none = json::array();
  const json& list = root.contains("vip") ? root["vip"] : none;
  if (!list.is_array()) return wrong(document, "vip", "must be tables; write [[vip]]");
  for (size_t i = 0; i < list.size(); ++i) {
    const std::string path = fmt::format("vip[{}]", i);
    model::Vip& vip = vips.emplace_back();
    const Result<> read =
        read_fields(list[i], model::vip_fields(), vip, {document, path, "instance"});
    if (!read) return Unexpected(read.error());
    const json& instances = list[i].contains("instance") ? list[i]["instance"] : none;
    if (!instances.is_array())
      return wrong(document, path + ".instance", "must be tables; write [[vip.instance]]");
    for (size_t k = 0; k < instances.size(); ++k) {
      const Result<> done =
          read_fields(instances[k], model::instance_fields(), vip.instances.emplace_back(),
                      {document, fmt::format("{}.instance[{}]", path, k)});
      if (!done) return Unexpected(done.error());
    }
  }
  model::complete(vips);
  if (const auto problem = model::find_problem(vips, may_be_empty))
    return wrong(document, problem->key, problem->message);
  return vips;
}

Result<json> parse(const std::string& text, Document& document) {
  const size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string::npos || text[first] != '{') return toml_to_json(text, document);
  json root = json::parse(text, nullptr, false);
  if (root.is_discarded()) return fail(ErrorCode::kInvalid, document.name + ": is no JSON");
  return root;
}

// Where each setting was given, by key: "lb.toml:3: lb.interval", "--interval",
// "BALLAST_LB_INTERVAL".
using Sources = std::map<std::string, std::string>;

Result<> read_file_into(const std::string& path, model::LbConfig& config, Sources& sources) {
  const auto text = read_file(path);
  if (!text) return fail(ErrorCode::kInvalid, fmt::format("{}: {}", path, text.error().message));
  Document document{.name = path, .lines = {}};
  const auto root = parse(*text, document);
  if (!root) return Unexpected(root.error());
  for (const auto& [key, value] : root->items()) {
    if (key != "lb" && key != "vip")
      return wrong(document, key, "there is no such key; there are [lb] and [[vip]]");
  }
  if (root->contains("lb")) {
    const Result<> read =
        read_fields((*root)["lb"], model::settings_fields(), config.settings, {document, "lb"});
    if (!read) return read;
    for (const auto& [key, value] : (*root)["lb"].items())
      sources[key] = fmt::format("{0}: lb.{1}", document.place("lb." + key), key);
  }
  auto vips = vips_of(*root, document, false);
  if (!vips) return Unexpected(vips.error());
  config.vips = std::move(*vips);
  return {};
}

std::optional<Problem> find_problem(const LbSettings& settings) {
  if (settings.interfaces.empty())
    return Problem{"interfaces", "none is given, by --interfaces or in [lb]"};
  for (const std::string& interface : settings.interfaces) {
    if (interface.empty() || interface.size() >= IF_NAMESIZE ||
        interface.find_first_of("/ ") != std::string::npos)
      return Problem{"interfaces", "\"" + interface + "\" is no interface's name"};
  }
  if (settings.interval_ms < 10 || settings.interval_ms > 60'000)
    return Problem{"interval", "from 10ms to 1m"};
  for (const auto& [key, ms] : {std::pair("tcp_idle", settings.tcp_idle_ms),
                                std::pair("tcp_closing", settings.tcp_closing_ms),
                                std::pair("udp_idle", settings.udp_idle_ms)}) {
    if (ms < 1000) return Problem{key, "1s or more"};
  }
  if (settings.connections < 1 || settings.connections > 64U * 1024 * 1024)
    return Problem{"connections", "from 1 to 67108864"};
  if (settings.keep && settings.pins.empty())
    return Problem{"keep", "needs pins: the tables must outlive the process too"};
  if (settings.api.starts_with('/')) {
    if (settings.api.size() < sizeof(sockaddr_un::sun_path)) return std::nullopt;
    return Problem{"api", "the path is too long for a Unix socket"};
  }
  const auto api = model::parse_endpoint(settings.api);
  if (!api) return Problem{"api", api.error().message};
  if (api->host != "127.0.0.1" && api->host != "::1" && api->host != "localhost")
    return Problem{
        "api", "\"" + settings.api + "\" is not on loopback; whoever reaches it may change VIPs"};
  return std::nullopt;
}

// Options go before the environment, which goes before the file.
Result<> set_given(const LbGiven& given, LbSettings& settings, Sources& sources) {
  for (const auto& field : model::settings_fields()) {
    const std::string name = variable_of(field.key);
    const auto option = given.options.find(field.key);
    const char* value = std::getenv(name.c_str());
    Result<> set;
    if (option != given.options.end()) {
      sources[field.key] = flag_of(field.key);
      set = field.set(settings, option->second);
    } else if (value != nullptr && *value != '\0') {
      sources[field.key] = name;
      set = field.set(settings, value);
    }
    if (!set) return fail(ErrorCode::kInvalid, sources[field.key] + ": " + set.error().message);
  }
  return {};
}

bool needs_secret(const model::LbConfig& config) {
  return std::ranges::any_of(
      config.vips, [](const model::Vip& vip) { return vip.load == model::LoadSource::kAgent; });
}

json as_json(const std::string& text, FieldForm form) {
  return form == FieldForm::kText ? json(text) : json::parse(text);
}

template <typename Item>
json object_of(const Item& item, std::span<const Field<Item>> fields) {
  static const Item kDefaults{};
  json object = json::object();
  for (const auto& field : fields) {
    if (field.get(item) != field.get(kDefaults))
      object[field.key] = as_json(field.get(item), field.form);
  }
  return object;
}

template <typename Item>
std::string rows(std::span<const Field<Item>> fields) {
  static const Item kDefaults{};
  std::string out = "| key | value | default | |\n|---|---|---|---|\n";
  for (const auto& field : fields) {
    const std::string shown = field.get(kDefaults);
    out += fmt::format("| `{}` | {} | {} | {} |\n", field.key, field.value,
                       shown.empty() ? "" : "`" + shown + "`", field.help);
  }
  return out;
}

}  // namespace

std::vector<Flag> lb_flags(LbGiven& given) {
  static const LbSettings kDefaults{};
  std::vector<Flag> flags{{.name = "-c,--config",
                           .value = "FILE",
                           .help = "lb.toml to read; also BALLAST_LB_CONFIG",
                           .set = [&given](const std::string& text) -> Result<> {
                             given.file = text;
                             return {};
                           }}};
  for (const auto& field : model::settings_fields()) {
    const bool is_switch = field.form == FieldForm::kSwitch;
    flags.push_back({.name = flag_of(field.key),
                     .value = is_switch ? "" : field.value,
                     .help = field.help,
                     .default_text = is_switch ? "" : field.get(kDefaults),
                     .set = [&given, key = field.key](const std::string& text) -> Result<> {
                       given.options[key] = text;
                       return {};
                     }});
  }
  return flags;
}

Result<model::LbConfig> load_lb_config(const LbGiven& given) {
  model::LbConfig config;
  Sources sources;
  std::string file = given.file;
  const char* variable = std::getenv("BALLAST_LB_CONFIG");
  if (file.empty() && variable != nullptr) file = variable;
  if (!file.empty()) {
    if (const Result<> read = read_file_into(file, config, sources); !read)
      return Unexpected(read.error());
  }
  if (const Result<> set = set_given(given, config.settings, sources); !set)
    return Unexpected(set.error());
  if (const auto problem = find_problem(config.settings)) {
    const auto source = sources.find(problem->key);
    return fail(ErrorCode::kInvalid,
                fmt::format("{}: {}", source == sources.end() ? problem->key : source->second,
                            problem->message));
  }
  if (!needs_secret(config) && config.settings.secret_file.empty() &&
      std::getenv("BALLAST_LB_SECRET") == nullptr)
    return config;
  const auto source = sources.find("secret_file");
  const auto secrets = lb_secrets(config.settings.secret_file,
                                  source == sources.end() ? "secret_file" : source->second);
  if (!secrets) return Unexpected(secrets.error());
  config.settings.secret = secrets->front();
  return config;
}

Result<std::vector<model::Vip>> read_vips(const std::string& name, const std::string& text,
                                          bool may_be_empty) {
  Document document{.name = name, .lines = {}};
  auto root = parse(text, document);
  if (!root) return Unexpected(root.error());
  for (const auto& [key, value] : root->items()) {
    // A whole lb.toml may be given; what is fixed while the process runs is not looked at.
    if (key != "vip" && key != "lb" && key != "generation")
      return wrong(document, key, "there is no such key; there is [[vip]]");
  }
  if (!root->contains("vip"))
    return wrong(document, "vip", "there is none; to remove all, write vip = []");
  return vips_of(*root, document, may_be_empty);
}

std::string vips_json(const std::vector<model::Vip>& vips) {
  json list = json::array();
  for (const model::Vip& vip : vips) {
    json object = object_of(vip, model::vip_fields());
    object["instance"] = json::array();
    for (const model::Instance& instance : vip.instances)
      object["instance"].push_back(object_of(instance, model::instance_fields()));
    list.push_back(std::move(object));
  }
  return json{{"vip", std::move(list)}}.dump();
}

std::string lb_reference_page() {
  return "# lb.toml\n\n"
         "<!-- Written by `ballast help --lb`; a test compares this page with it. -->\n\n"
         "The load balancer's file, read by `ballast lb run -c lb.toml`. Times are written with "
         "their unit (`\"300ms\"`, `\"2m\"`). VIPs are spelled alike in JSON, for the HTTP "
         "interface "
         "and `ballast lb apply`.\n\n## [lb]\n\n"
         "Also as options (`--state-file`) and in the environment (`BALLAST_LB_STATE_FILE`); "
         "options override the environment, which overrides the file. Fixed while the process "
         "runs.\n\n" +
         rows(model::settings_fields()) + "\n## [[vip]]\n\n" + rows(model::vip_fields()) +
         "\n## [[vip.instance]]\n\n" + rows(model::instance_fields());
}

}  // namespace ballast::app
